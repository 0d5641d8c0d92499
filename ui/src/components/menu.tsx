import { DropdownMenu as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import { classes } from "@/components/classes";

/** A button that opens a list of actions. Not modal: a modal one adds a <style>, which the policy forbids. */
export function Menu({ trigger, label, children }: { trigger: ReactElement; label?: string; children: ReactNode }) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align="end"
          sideOffset={4}
          collisionPadding={8}
          {...(label ? { "aria-label": label } : {})}
          className="z-50 min-w-44 max-w-80 rounded-lg border bg-surface p-1 shadow-lg"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export interface MenuItemProps {
  icon?: ReactNode;
  danger?: boolean;
  /** Why it cannot be chosen now; shown below it. */
  reason?: string | null | undefined;
  onSelect: () => void;
  children: ReactNode;
}

const ITEM =
  "flex cursor-default select-none items-center gap-2 rounded-md px-2 py-1.5 outline-none data-highlighted:bg-raised";

export function MenuItem({ icon, danger = false, reason, onSelect, children }: MenuItemProps) {
  return (
    <Radix.Item
      disabled={Boolean(reason)}
      onSelect={onSelect}
      className={classes(ITEM, danger && "text-danger", reason && "text-faint!")}
    >
      {icon}
      <span>
        {children}
        {reason && <span className="block text-2xs">{reason}</span>}
      </span>
    </Radix.Item>
  );
}

export interface MenuChoiceProps {
  label: string;
  value: string;
  options: readonly { value: string; label: string; icon?: ReactNode }[];
  onChange: (value: string) => void;
}

/** One of several. */
export function MenuChoice({ label, value, options, onChange }: MenuChoiceProps) {
  return (
    <Radix.RadioGroup value={value} onValueChange={onChange} aria-label={label}>
      {options.map((option) => (
        <Radix.RadioItem key={option.value} value={option.value} className={ITEM}>
          {option.icon}
          <span className="grow">{option.label}</span>
          <Radix.ItemIndicator>✓</Radix.ItemIndicator>
        </Radix.RadioItem>
      ))}
    </Radix.RadioGroup>
  );
}

/** One of several that can be on or off. The menu stays open. */
export function MenuCheck({ checked, onChange, children }: MenuCheckProps) {
  return (
    <Radix.CheckboxItem
      checked={checked}
      onCheckedChange={onChange}
      onSelect={(event) => event.preventDefault()}
      className={ITEM}
    >
      <span className="grow">{children}</span>
      <Radix.ItemIndicator>✓</Radix.ItemIndicator>
    </Radix.CheckboxItem>
  );
}

export interface MenuCheckProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <Radix.Label className="px-2 py-1.5 text-dim text-xs">{children}</Radix.Label>;
}

export function MenuSeparator() {
  return <Radix.Separator className="my-1 h-px bg-line" />;
}
