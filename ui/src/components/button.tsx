import { type ComponentProps, type MouseEvent, type ReactNode, useId } from "react";
import { classes } from "@/components/classes";
import { Tooltip } from "@/components/tooltip";

export type Tone = "accent" | "plain" | "ghost" | "danger";

const TONES: Record<Tone, string> = {
  accent: "bg-accent text-on-accent border-transparent hover:opacity-90",
  plain: "bg-surface text-text border-line-strong hover:bg-raised",
  ghost: "bg-transparent text-dim border-transparent hover:bg-raised hover:text-text",
  danger: "bg-danger text-on-danger border-transparent hover:opacity-90",
};

export interface ButtonProps extends ComponentProps<"button"> {
  tone?: Tone;
  size?: "small" | "medium";
  icon?: ReactNode;
  /** Why it cannot be used now. It stays reachable by keyboard, so that the reason can be read. */
  reason?: string | null | undefined;
}

export function Button({ tone = "plain", size = "medium", icon, reason, className, children, ...rest }: ButtonProps) {
  const barred = Boolean(reason);
  const reasonId = useId();
  const button = (
    <button
      type="button"
      {...rest}
      {...(barred && { "aria-disabled": true, "aria-describedby": reasonId, onClick: swallow })}
      className={classes(
        "inline-flex select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-md border font-medium",
        "transition-colors disabled:opacity-50 aria-disabled:cursor-not-allowed aria-disabled:opacity-50",
        size === "small" ? "h-7 px-2 text-xs" : "h-8 px-3",
        TONES[tone],
        className,
      )}
    >
      {icon}
      {children}
    </button>
  );
  if (!reason) return button;
  return (
    <>
      <Tooltip label={reason}>{button}</Tooltip>
      {/* The tooltip is there only while it shows; screen readers are told at once. */}
      <span id={reasonId} hidden>
        {reason}
      </span>
    </>
  );
}

function swallow(event: MouseEvent): void {
  event.preventDefault();
  event.stopPropagation();
}

export interface IconButtonProps extends Omit<ButtonProps, "icon" | "children"> {
  /** Read aloud, and shown on hover. */
  label: string;
  children: ReactNode;
}

export function IconButton({ label, tone = "ghost", size = "medium", reason, className, ...rest }: IconButtonProps) {
  return (
    <Tooltip label={reason ?? label}>
      <Button
        tone={tone}
        aria-label={label}
        {...rest}
        {...(reason && { "aria-disabled": true, onClick: swallow })}
        className={classes("shrink-0 px-0!", size === "small" ? "size-7" : "size-8", className)}
      />
    </Tooltip>
  );
}
