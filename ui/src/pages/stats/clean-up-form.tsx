import { Checkbox, Input, Select } from "@/components/field";
import { type CleanUpChoice, FINISHED, type Finished, UNITS, type Unit } from "@/pages/stats/clean-up-choice";

export interface CleanUpFormProps {
  choice: CleanUpChoice;
  onChange: (choice: CleanUpChoice) => void;
  disabled: boolean;
}

export function CleanUpForm({ choice, onChange, disabled }: CleanUpFormProps) {
  function toggle(status: Finished) {
    const statuses = FINISHED.filter((each) => (each === status) !== choice.statuses.includes(each));
    onChange({ ...choice, statuses });
  }

  return (
    <fieldset disabled={disabled} className="space-y-4">
      <legend className="sr-only">What to delete</legend>
      <div>
        <label htmlFor="clean-up-age" className="mb-1 block font-medium">
          Finished longer ago than
        </label>
        <div className="flex gap-2">
          <Input
            id="clean-up-age"
            type="number"
            min={0}
            step="any"
            value={choice.age}
            onChange={(event) => onChange({ ...choice, age: event.target.value })}
            className="w-28!"
          />
          <Select
            aria-label="Unit of the age"
            value={choice.unit}
            onChange={(event) => onChange({ ...choice, unit: event.target.value as Unit })}
          >
            {Object.keys(UNITS).map((unit) => (
              <option key={unit}>{unit}</option>
            ))}
          </Select>
        </div>
      </div>
      <fieldset>
        <legend className="mb-1 font-medium">With the status</legend>
        <div className="flex flex-wrap gap-x-4 gap-y-2">
          {FINISHED.map((status) => (
            // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
            <label key={status} className="flex items-center gap-2 capitalize">
              <Checkbox checked={choice.statuses.includes(status)} onChange={() => toggle(status)} />
              {status}
            </label>
          ))}
        </div>
      </fieldset>
    </fieldset>
  );
}
