import { useQuery } from "@tanstack/react-query";
import { auditQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { AuditLine } from "@/pages/audit/audit-line";

const SHOWN = 10;

/** Who has done what to the type and to its tasks; a mass action is one line. */
export function TypeAudit({ type }: { type: string }) {
  const { data, error, refetch } = useQuery(auditQuery({ type, folded: true, limit: SHOWN }));
  return (
    <Card flush title="What operators did">
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !data ? (
        <Loading />
      ) : data.entries.length === 0 ? (
        <p className="px-4 py-8 text-center text-dim">Nothing yet, to this type or to one of its tasks.</p>
      ) : (
        <ul aria-label="What operators did" className="divide-y">
          {data.entries.map((entry, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: entries have no other name
            <AuditLine key={`${entry.at} ${at}`} entry={entry} />
          ))}
        </ul>
      )}
    </Card>
  );
}
