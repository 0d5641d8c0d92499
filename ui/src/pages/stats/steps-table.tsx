import { HeaderCell, Row, Table, Cell as TableCell } from "@/components/table";
import { percent, type Step } from "@/pages/stats/steps";
import { stepLabel } from "@/pages/stats/time-axis";
import { count } from "@/text/number";
import { duration } from "@/text/time";

const COLUMNS: readonly [label: string, show: (step: Step) => string][] = [
  ["Arrived", (step) => number(step.arrived)],
  ["Completed", (step) => count(step.completed)],
  ["Retried", (step) => count(step.retried)],
  ["Failed", (step) => count(step.failed)],
  ["Cancelled", (step) => count(step.cancelled)],
  ["Tasks failed", (step) => percent(step.failedShare)],
  ["Attempts failed", (step) => percent(step.attemptsFailedShare)],
  ["p50", (step) => length(step.p50)],
  ["p95", (step) => length(step.p95)],
  ["p99", (step) => length(step.p99)],
  ["Waited p95", (step) => length(step.waited95)],
  ["Waiting", (step) => number(step.depth)],
  ["Backlog age", (step) => length(step.backlogMs)],
];

const EARLIER_COLUMNS: typeof COLUMNS = [
  ["Completed", ({ before }) => number(before && Math.round(before.completed))],
  ["Arrived", ({ before }) => number(before && (before.arrived === null ? null : Math.round(before.arrived)))],
  ["Waiting", ({ before }) => number(before?.depth ?? null)],
];

/** What the charts show, in figures; newest first. */
export function StepsTable({ steps, earlier }: { steps: readonly Step[]; earlier: string | null }) {
  const compared = EARLIER_COLUMNS.map(([label, show]) => [`${label}, ${earlier}`, show] as const);
  const columns = earlier === null ? COLUMNS : [...COLUMNS, ...compared];
  return (
    <Table label="Over time, as a table" scrolling>
      <thead className="sticky top-0 bg-surface shadow-[inset_0_-1px_var(--line)]">
        <tr>
          <HeaderCell>Time</HeaderCell>
          {columns.map(([label]) => (
            <HeaderCell key={label} className="text-right">
              {label}
            </HeaderCell>
          ))}
        </tr>
      </thead>
      <tbody>
        {steps.toReversed().map((step) => (
          <Row key={step.at}>
            <TableCell className="h-8! whitespace-nowrap py-1!">
              {stepLabel(step)}
              {step.growing && <span className="text-dim"> (so far)</span>}
            </TableCell>
            {columns.map(([label, show]) => (
              <TableCell key={label} className="h-8! whitespace-nowrap py-1! text-right">
                {show(step)}
              </TableCell>
            ))}
          </Row>
        ))}
      </tbody>
    </Table>
  );
}

function number(value: number | null): string {
  return value === null ? "–" : count(value);
}

function length(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}
