import { Link } from "@tanstack/react-router";
import { STATUSES, type Stats } from "@/api/model";
import { StatusBadge } from "@/components/status-badge";
import { qualified } from "@/pages/tasks/search/qualified";
import { compact, count } from "@/text/number";

/** How many tasks there are in each status; each leads to them. */
export function StatusCards({ stats }: { stats: Stats }) {
  return (
    <ul aria-label="Tasks by status" className="grid grid-cols-2 gap-3 sm:grid-cols-3 md:grid-cols-5">
      {STATUSES.map((status) => (
        <li key={status} className="last:max-sm:col-span-2">
          <Link
            to="/tasks"
            search={{ q: qualified({ status }) }}
            className="block h-full rounded-lg border bg-surface p-3 hover:border-line-strong hover:bg-raised/60"
          >
            <StatusBadge status={status} />
            <p className="mt-2 flex flex-wrap items-baseline gap-x-2">
              <span className="font-semibold text-2xl" title={count(stats[status])} data-count={status}>
                {stats[status] < 10_000_000 ? count(stats[status]) : compact(stats[status])}
              </span>
              {status === "failed" && stats.waiting > 0 && (
                <span className="text-dim text-xs">{count(stats.waiting)} to retry</span>
              )}
            </p>
          </Link>
        </li>
      ))}
    </ul>
  );
}
