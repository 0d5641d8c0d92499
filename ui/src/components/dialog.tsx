import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { Button } from "@/components/button";
import { classes } from "@/components/classes";

export interface DialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  /** Buttons at the end. */
  footer?: ReactNode;
  wide?: boolean;
}

export function Dialog({ open, onOpenChange, title, description, children, footer, wide = false }: DialogProps) {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        {/* Not Radix' overlay: that one adds a <style> element, which the content security policy forbids. */}
        <div className="fixed inset-0 z-40 bg-black/40" aria-hidden="true" />
        <Radix.Content
          data-modal=""
          {...(description ? {} : { "aria-describedby": undefined })}
          className={classes(
            "fixed top-[12vh] left-1/2 z-40 flex max-h-[76vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col",
            "rounded-xl border bg-surface shadow-xl outline-none",
            wide ? "max-w-2xl" : "max-w-md",
          )}
        >
          <Radix.Title className="shrink-0 px-5 pt-5 pr-14 font-semibold text-base">{title}</Radix.Title>
          <div className="min-h-0 overflow-y-auto px-5 pb-5">
            {description && (
              <Radix.Description asChild>
                <div className="mt-1 text-dim">{description}</div>
              </Radix.Description>
            )}
            {children && <div className="mt-4 empty:hidden">{children}</div>}
          </div>
          {footer && <footer className="flex flex-wrap justify-end gap-2 border-t px-5 py-3">{footer}</footer>}
          {/* Last, so that the first field or button of the content gets the focus; without a tooltip, which would
              take the first press of Escape. */}
          <Radix.Close asChild>
            <Button tone="ghost" aria-label="Close" className="absolute! top-3.5 right-3.5 size-8 px-0!">
              <X className="size-4" aria-hidden="true" />
            </Button>
          </Radix.Close>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
