import { Tooltip as Radix } from "radix-ui";
import type { ReactElement } from "react";

export const TooltipProvider = Radix.Provider;

/** A word on hover and on focus. The child must be one element that takes a ref. */
export function Tooltip({ label, children }: { label: string; children: ReactElement }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-w-xs rounded-md bg-text px-2 py-1 text-ground text-xs shadow-md"
        >
          {label}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
