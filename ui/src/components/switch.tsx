import { classes } from "@/components/classes";

export interface SwitchProps {
  /** What is on or off: "Pause send_email". */
  label: string;
  checked: boolean;
  busy?: boolean;
  onChange: (checked: boolean) => void;
}

/** On is the colour of a warning: what is switched here holds work up. */
export function Switch({ label, checked, busy = false, onChange }: SwitchProps) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={checked}
      aria-label={label}
      aria-busy={busy}
      onClick={() => busy || onChange(!checked)}
      className={classes(
        "relative inline-flex align-middle h-5 w-9 shrink-0 items-center rounded-full border transition-colors",
        checked ? "border-processing bg-processing" : "border-line-strong bg-raised",
        busy && "opacity-60",
      )}
    >
      <span
        aria-hidden="true"
        className={classes(
          "size-3.5 rounded-full transition-transform",
          checked ? "translate-x-4.5 bg-surface" : "translate-x-0.5 bg-dim",
        )}
      />
    </button>
  );
}
