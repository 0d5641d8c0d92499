import type { WorkerDetail } from "@/api/model";
import { Card } from "@/components/card";
import { Fact, Facts, TimeFact } from "@/components/facts";
import { SafeText } from "@/components/safe-text";
import { Heard, Queues, Running, Types } from "@/pages/workers/worker-parts";
import { count } from "@/text/number";

export function WorkerFacts({ worker }: { worker: WorkerDetail }) {
  return (
    <Card title="Details">
      <Facts>
        <Fact label="Slots busy">
          <Running worker={worker} />
        </Fact>
        <Fact label="Heartbeat">
          <Heard worker={worker} />
        </Fact>
        <TimeFact label="Started" at={worker.startedAt} />
        <Fact label="Host">
          <SafeText text={worker.hostname} max={120} className="break-all" />
          <span className="text-dim"> · pid {worker.pid}</span>
        </Fact>
        {worker.version !== null && (
          <Fact label="Version">
            <SafeText text={worker.version} max={120} className="break-all" />
          </Fact>
        )}
        <Fact label="Restarts">
          {count(worker.earlier.length)} <span className="text-dim">in the last day</span>
        </Fact>
        <Fact label="Queues">
          <Queues queues={worker.queues} />
        </Fact>
        <Fact label="Types">
          <Types types={worker.types} />
        </Fact>
      </Facts>
    </Card>
  );
}
