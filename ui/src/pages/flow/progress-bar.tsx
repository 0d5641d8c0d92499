import type { FlowCounts } from "@/api/model";
import { BAR_COLOURS, barOf } from "@/pages/flow/state";

/** The words beside it say the same. */
export function ProgressBar({ counts }: { counts: FlowCounts }) {
  return (
    <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" className="h-1.5 w-full rounded-full">
      <rect width={100} height={4} className="fill-raised" />
      {barOf(counts).map((part) => (
        <rect key={part.state} x={part.from} width={part.width} height={4} className={BAR_COLOURS[part.state]} />
      ))}
    </svg>
  );
}
