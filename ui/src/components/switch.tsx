import { classes } from "@/components/classes";

export interface SwitchProps {
  /** What is on or off: "Pause send_email". */
  label: string;
  /** What stands beside it: the beginning of the label. None where the place says what it switches. */
  text?: string | undefined;
  checked: boolean;
  busy?: boolean;
  onChange: (checked: boolean) => void;
}

/** On is the colour of a warning: what is switched here holds work up. */
export function Switch({ label, text, checked, busy = false, onChange }: SwitchProps) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={checked}
      aria-label={label}
      aria-busy={busy}
      onClick={() => busy || onChange(!checked)}
      className={classes("inline-flex shrink-0 items-center gap-2 rounded-full align-middle", busy && "opacity-60")}
    >
      {text && <span className="text-dim text-xs">{text}</span>}
      <span
        aria-hidden="true"
        className={classes(
          "inline-flex h-5 w-9 items-center rounded-full border transition-colors",
          checked ? "border-processing bg-processing" : "border-line-strong bg-raised",
        )}
      >
        <span
          className={classes(
            "size-3.5 rounded-full transition-transform",
            checked ? "translate-x-4.5 bg-surface" : "translate-x-0.5 bg-dim",
          )}
        />
      </span>
    </button>
  );
}
