import type { ReactNode } from "react";
import type { WorkerDetail } from "@/api/model";
import { Card } from "@/components/card";
import { SafeText } from "@/components/safe-text";
import { AbsoluteTime, RelativeTime } from "@/components/times";
import { Heard, Queues, Running, Types } from "@/pages/workers/worker-parts";
import { count } from "@/text/number";

export function WorkerFacts({ worker }: { worker: WorkerDetail }) {
  return (
    <Card title="Details">
      <dl className="grid grid-cols-[6.5rem_minmax(0,1fr)] gap-x-3 gap-y-2">
        <Item label="Slots busy">
          <Running worker={worker} />
        </Item>
        <Item label="Heartbeat">
          <Heard worker={worker} />
        </Item>
        <Item label="Started">
          <RelativeTime at={worker.startedAt} />
          <span className="block text-faint text-xs">
            <AbsoluteTime at={worker.startedAt} />
          </span>
        </Item>
        <Item label="Host">
          <SafeText text={worker.hostname} max={120} className="break-all" />
          <span className="text-dim"> · pid {worker.pid}</span>
        </Item>
        {worker.version !== null && (
          <Item label="Version">
            <SafeText text={worker.version} max={120} className="break-all" />
          </Item>
        )}
        <Item label="Restarts">
          {count(worker.earlier.length)} <span className="text-dim">in the last day</span>
        </Item>
        <Item label="Queues">
          <Queues queues={worker.queues} />
        </Item>
        <Item label="Types">
          <Types types={worker.types} />
        </Item>
      </dl>
    </Card>
  );
}

function Item({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-dim">{label}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}
