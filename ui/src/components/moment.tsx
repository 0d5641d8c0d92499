import { useEffect, useState } from "react";
import { Input } from "@/components/field";

export interface MomentProps {
  label: string;
  at: string | null;
  onChange: (at: string | null) => void;
}

/** A moment, with its label beside it. */
export function Moment({ label, ...rest }: MomentProps) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the input is the control
    <label className="flex items-center gap-1.5 text-dim max-md:w-full">
      <span className="shrink-0 whitespace-nowrap max-md:min-w-10">{label}</span>
      <MomentInput {...rest} />
    </label>
  );
}

/** In the viewer's zone. Set when it is left or confirmed, not at each digit. */
export function MomentInput({ at, onChange }: Omit<MomentProps, "label">) {
  const [draft, setDraft] = useState(local(at));
  useEffect(() => setDraft(local(at)), [at]);

  function apply() {
    if (draft === local(at)) return;
    const instant = Date.parse(draft);
    onChange(Number.isNaN(instant) ? null : new Date(instant).toISOString());
  }

  return (
    <Input
      type="datetime-local"
      className="w-50 max-md:grow"
      value={draft}
      onChange={({ target }) => setDraft(target.value)}
      onBlur={apply}
      onKeyDown={({ key }) => key === "Enter" && apply()}
    />
  );
}

function local(at: string | null): string {
  if (!at) return "";
  const time = new Date(at);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
