import { Link } from "@tanstack/react-router";
import { STATUSES, type Stats } from "@/api/model";
import { StatusBadge } from "@/components/status-badge";
import { qualified } from "@/pages/tasks/search/qualified";
import { compact, count } from "@/text/number";

/** How many tasks there are in each status; each leads to them. */
export function StatusCards({ stats }: { stats: Stats }) {
  return (
    <ul aria-label="Tasks by status" className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-5">
      {STATUSES.map((status) => (
        <li key={status} className="last:max-sm:col-span-2">
          <Link
            to="/tasks"
            search={{ q: qualified({ status }) }}
            className="block h-full rounded-lg border bg-surface p-3 hover:border-line-strong hover:bg-raised/60"
          >
            <StatusBadge status={status} />
            <p className="mt-2 font-semibold text-2xl" title={count(stats[status])} data-count={status}>
              {stats[status] < 10_000_000 ? count(stats[status]) : compact(stats[status])}
            </p>
            <p className="min-h-5 text-dim text-xs">
              {status === "failed" && stats.waiting > 0 && `${count(stats.waiting)} of them wait for a retry`}
            </p>
          </Link>
        </li>
      ))}
    </ul>
  );
}
