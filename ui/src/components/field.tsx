import { ChevronDown } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { classes } from "@/components/classes";

const BOX =
  "h-8 w-full rounded-md border border-line-strong bg-surface px-2.5 placeholder:text-faint disabled:opacity-50";

/** Every one of these needs a label: with `Field` around it, or aria-label. */
export function Input({ className, ...rest }: ComponentProps<"input">) {
  return <input {...rest} className={classes(BOX, className)} />;
}

export function TextArea({ className, ...rest }: ComponentProps<"textarea">) {
  return (
    <textarea spellCheck={false} {...rest} className={classes(BOX, "h-auto py-1.5 font-mono text-xs", className)} />
  );
}

/** The browser's own: works with every keyboard, screen reader and phone. */
export function Select({ className, children, ...rest }: ComponentProps<"select">) {
  return (
    <span className={classes("relative inline-block", className)}>
      <select {...rest} className={classes(BOX, "appearance-none pr-8")}>
        {children}
      </select>
      <ChevronDown className="pointer-events-none absolute top-2 right-2 size-4 text-dim" aria-hidden="true" />
    </span>
  );
}

export interface CheckboxProps extends Omit<ComponentProps<"input">, "type"> {
  /** Neither all nor none of what it stands for. */
  mixed?: boolean;
}

export function Checkbox({ mixed = false, className, ...rest }: CheckboxProps) {
  return (
    <input
      type="checkbox"
      {...rest}
      ref={(box) => {
        if (box) box.indeterminate = mixed;
      }}
      className={classes("size-4 shrink-0 accent-accent", className)}
    />
  );
}

export interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: ReactNode;
  children: ReactNode;
}

/** A label above its input. */
export function Field({ label, hint, error, children }: FieldProps) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
    <label className="block">
      <span className="mb-1 block font-medium">{label}</span>
      {children}
      {hint && <span className="mt-1 block text-dim text-xs">{hint}</span>}
      {error && <span className="mt-1 block text-failed text-xs">{error}</span>}
    </label>
  );
}
