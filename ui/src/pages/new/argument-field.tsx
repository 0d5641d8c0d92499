import { Field, Input, Select, TextArea } from "@/components/field";
import { SafeText } from "@/components/safe-text";
import type { Argument } from "@/pages/new/arguments";
import { escapeText } from "@/text/escape";

export interface ArgumentFieldProps {
  argument: Argument;
  text: string;
  error: string | undefined;
  onChange: (text: string) => void;
}

export function ArgumentField({ argument, text, error, onChange }: ArgumentFieldProps) {
  const { name, kind, required, hint, choices } = argument;
  const shared = { value: text, "aria-invalid": error !== undefined, required };
  const offered = kind === "truth" ? ["true", "false"] : choices;
  return (
    <Field
      label={
        <>
          <SafeText text={name} max={120} />
          {!required && <span className="ml-1 font-normal text-dim text-xs">optional</span>}
        </>
      }
      hint={hint && <SafeText text={hint} max={300} />}
      error={error && <SafeText text={error} max={300} />}
    >
      {kind === "json" ? (
        <TextArea {...shared} rows={3} onChange={({ target }) => onChange(target.value)} />
      ) : offered.length > 0 ? (
        <Select {...shared} className="w-full" onChange={({ target }) => onChange(target.value)}>
          <option value="">{required ? "Choose" : "Not given"}</option>
          {(text === "" || offered.includes(text) ? offered : [text, ...offered]).map((each) => (
            <option key={each} value={each}>
              {escapeText(each).slice(0, 120)}
            </option>
          ))}
        </Select>
      ) : (
        <Input
          {...shared}
          inputMode={kind === "number" ? "decimal" : "text"}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}
