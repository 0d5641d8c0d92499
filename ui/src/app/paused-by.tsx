import type { Control } from "@/api/model";
import { SafeText } from "@/components/safe-text";
import { RelativeTime } from "@/components/times";

/** Who paused it, and when. Nothing where neither is known. */
export function PausedBy({ control }: { control: Pick<Control, "pausedBy" | "pausedAt"> }) {
  const { pausedBy, pausedAt } = control;
  if (!pausedAt) return null;
  return (
    <span data-paused-by="" className="text-xs">
      {pausedBy ? (
        <>
          by <SafeText text={pausedBy} max={60} className="font-medium" />
        </>
      ) : (
        "by code"
      )}{" "}
      <RelativeTime at={pausedAt} />
    </span>
  );
}
