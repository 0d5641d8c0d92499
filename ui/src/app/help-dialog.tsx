import { Dialog } from "@/components/dialog";
import { useActiveHotkeys } from "@/hooks/use-hotkeys";

const NAMES: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", " ": "Space" };

export function HelpDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const hotkeys = useActiveHotkeys();
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Keyboard">
      <dl className="space-y-2">
        {hotkeys.map(({ key, label }) => (
          <div key={`${key} ${label}`} className="flex items-center justify-between gap-4">
            <dt className="text-dim">{label}</dt>
            <dd>
              <kbd className="rounded border border-line-strong bg-raised px-1.5 py-0.5 font-mono text-xs">
                {NAMES[key] ?? key}
              </kbd>
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
