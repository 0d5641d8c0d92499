import { useId } from "react";
import type { Control } from "@/api/model";
import { type Master, type RateChoice, rateFault } from "@/app/rate-choice";
import { Input } from "@/components/field";

export interface RateLimitFieldProps {
  control: Pick<Control, "defaultRateLimit">;
  /** Whether the code's limit can be lifted without another in its place. */
  canLift: boolean;
  choice: RateChoice;
  onChange: (choice: RateChoice) => void;
}

/** Who sets the rate, and to what. */
export function RateLimitField({ control, canLift, choice, onChange }: RateLimitFieldProps) {
  const name = useId();
  const fault = rateFault(choice);
  const code = control.defaultRateLimit;
  const options: readonly (readonly [Master, string])[] = [
    ["code", code ? `As the code says: ${code} a second` : "As the code says: no limit"],
    ...(canLift ? ([["none", "No limit, whatever the code says"]] as const) : []),
    ["operator", "At most"],
  ];
  return (
    <fieldset>
      <legend className="mb-1 font-medium">Rate limit</legend>
      <div className="space-y-1.5">
        {options.map(([master, label]) => (
          <div key={master} className="flex min-h-8 items-center gap-2">
            <label className="flex items-center gap-2">
              <input
                type="radio"
                name={name}
                checked={choice.master === master}
                onChange={() => onChange({ ...choice, master })}
                className="size-4 accent-accent"
              />
              {label}
            </label>
            {master === "operator" && (
              <>
                <Input
                  aria-label="Starts a second"
                  aria-invalid={fault !== null && choice.rate !== ""}
                  aria-describedby={`${name}-fault`}
                  inputMode="decimal"
                  value={choice.rate}
                  onFocus={() => choice.master !== master && onChange({ ...choice, master })}
                  onChange={(event) => onChange({ master, rate: event.target.value })}
                  className="w-24!"
                />
                <span>starts a second</span>
              </>
            )}
          </div>
        ))}
      </div>
      <p id={`${name}-fault`} className="min-h-4 text-failed text-xs">
        {choice.rate !== "" && fault}
      </p>
    </fieldset>
  );
}
