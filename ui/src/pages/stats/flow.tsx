import { Rocket, TrendingDown, TrendingUp } from "lucide-react";
import { SafeText } from "@/components/safe-text";
import { AbsoluteTime } from "@/components/times";
import type { Mark } from "@/pages/stats/marks";
import { type Summary, type Verdict, verdictOf } from "@/pages/stats/steps";
import { count } from "@/text/number";

const SAID: Record<Verdict, string> = {
  behind: "Falling behind:",
  "catching up": "Catching up:",
  "keeping up": "Keeping up:",
};

/** Are we falling behind? */
export function VerdictLine({ summary }: { summary: Summary }) {
  const verdict = verdictOf(summary);
  const { arrived, ended, growth, depth } = summary;
  if (verdict === null || growth === null || depth === null) return null;
  const Icon = verdict === "behind" ? TrendingUp : TrendingDown;
  const change = growth === 0 ? "as many as" : `${count(Math.abs(growth))} ${growth > 0 ? "more" : "fewer"} than`;
  return (
    <p data-verdict={verdict} className="flex items-start gap-1.5">
      {verdict !== "keeping up" && (
        <Icon
          className={
            verdict === "behind" ? "mt-0.5 size-4 shrink-0 text-failed" : "mt-0.5 size-4 shrink-0 text-completed"
          }
          aria-hidden="true"
        />
      )}
      <span>
        <strong className={verdict === "behind" ? "font-semibold text-failed" : "font-semibold"}>
          {SAID[verdict]}
        </strong>{" "}
        {arrived !== null && `${count(arrived)} tasks arrived and ${count(ended)} ended; `}
        {count(depth)} due {depth === 1 ? "task waits" : "tasks wait"}, {change} at the start.
      </span>
    </p>
  );
}

/** The marks of the charts in words. */
export function Deploys({ marks }: { marks: readonly Mark[] }) {
  if (marks.length === 0) return null;
  return (
    <div className="flex items-start gap-1.5 text-dim">
      <Rocket className="mt-0.5 size-4 shrink-0 text-accent" aria-hidden="true" />
      <ul aria-label="Deploys in this time" className="flex flex-wrap gap-x-4">
        {marks.map(({ version, startedAt }) => (
          <li key={version}>
            Version <SafeText text={version} max={100} className="font-medium text-text" /> first started{" "}
            <AbsoluteTime at={startedAt} />
          </li>
        ))}
      </ul>
    </div>
  );
}
