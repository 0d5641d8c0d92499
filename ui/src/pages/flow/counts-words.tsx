import { Link } from "@tanstack/react-router";
import { Fragment } from "react";
import type { FlowCounts } from "@/api/model";
import { flowTasks } from "@/pages/flow/node-link";
import { BAR_ORDER } from "@/pages/flow/state";
import { count } from "@/text/number";

export interface CountsWordsProps {
  flowId: string;
  /** Of this type only. */
  type?: string;
  counts: FlowCounts;
}

/** "5 completed, 1 failed", each the way to these tasks. */
export function CountsWords({ flowId, type, counts }: CountsWordsProps) {
  const there = BAR_ORDER.filter((state) => counts[state] > 0);
  return (
    <span>
      {there.map((state, at) => (
        <Fragment key={state}>
          {at > 0 && ", "}
          <Link
            {...flowTasks(flowId, type, state)}
            className={`whitespace-nowrap underline decoration-line-strong hover:decoration-current ${
              state === "failed" ? "font-semibold text-failed" : ""
            }`}
          >
            {count(counts[state])} {state}
          </Link>
        </Fragment>
      ))}
    </span>
  );
}
