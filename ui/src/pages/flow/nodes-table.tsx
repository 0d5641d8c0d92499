import { Link } from "@tanstack/react-router";
import { memo, useMemo, useState } from "react";
import type { FlowNode } from "@/api/model";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { Cell, HeaderCell, Row, Table } from "@/components/table";
import { CountsWords } from "@/pages/flow/counts-words";
import { tasksOf } from "@/pages/flow/node-link";
import { ProgressBar } from "@/pages/flow/progress-bar";
import { stateOf } from "@/pages/flow/state";
import { count } from "@/text/number";

const SHOWN = 100;
const MOST_NAMES = 4;

/** What the drawing shows, in words: for screen readers, for phones, and for whoever likes that better. */
export function NodesTable({ flowId, nodes }: { flowId: string; nodes: readonly FlowNode[] }) {
  const [shown, setShown] = useState(SHOWN);
  const types = useMemo(() => new Map(nodes.map(({ key, type }) => [key, type])), [nodes]);
  const rest = nodes.length - shown;
  return (
    <Card title="Steps" flush>
      <Table label="Steps of the flow">
        <thead>
          <tr>
            <HeaderCell>Type</HeaderCell>
            <HeaderCell className="max-md:hidden">Waits for</HeaderCell>
            <HeaderCell>Status</HeaderCell>
            <HeaderCell className="w-1/3 max-lg:hidden">Tasks</HeaderCell>
          </tr>
        </thead>
        <tbody>
          {nodes.slice(0, shown).map((node) => (
            <NodeRow key={node.key} flowId={flowId} node={node} names={namesOf(node, types)} />
          ))}
        </tbody>
      </Table>
      {rest > 0 && (
        <div className="border-t px-3 py-2">
          <Button size="small" onClick={() => setShown(shown + SHOWN)}>
            Show {Math.min(SHOWN, rest)} more of {count(nodes.length)}
          </Button>
        </div>
      )}
    </Card>
  );
}

interface NodeRowProps {
  flowId: string;
  node: FlowNode;
  names: string;
}

const NodeRow = memo(function NodeRow({ flowId, node, names }: NodeRowProps) {
  const state = stateOf(node.counts);
  return (
    <Row data-step={node.key} data-state={state}>
      <Cell className="min-w-28 max-w-72">
        <Link {...tasksOf(flowId, node)} className="wrap-anywhere font-medium text-accent hover:underline">
          <SafeText text={node.type} max={120} />
        </Link>
        {names && (
          <span className="block text-dim text-xs md:hidden">
            after <SafeText text={names} max={120} className="wrap-anywhere" />
          </span>
        )}
      </Cell>
      <Cell className="max-w-60 text-dim max-md:hidden">
        {names ? <SafeText text={names} max={200} className="wrap-anywhere" /> : <span className="text-faint">–</span>}
      </Cell>
      <Cell>
        <StatusBadge status={state} />
        {node.total > 1 && (
          <span className="block pt-1 text-xs lg:hidden">
            <CountsWords flowId={flowId} type={node.type} counts={node.counts} />
          </span>
        )}
      </Cell>
      <Cell className="max-lg:hidden">
        {node.total > 1 ? (
          <>
            <CountsWords flowId={flowId} type={node.type} counts={node.counts} />
            <ProgressBar counts={node.counts} />
          </>
        ) : (
          <span className="text-dim">one task</span>
        )}
      </Cell>
    </Row>
  );
});

function namesOf({ parents }: FlowNode, types: ReadonlyMap<string, string>): string {
  const names = parents.slice(0, MOST_NAMES).map((key) => types.get(key) ?? key);
  const more = parents.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}
