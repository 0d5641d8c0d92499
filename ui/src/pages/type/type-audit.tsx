import { useQuery } from "@tanstack/react-query";
import { stringify } from "@/api/exact";
import { auditQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { SafeText } from "@/components/safe-text";
import { RelativeTime } from "@/components/times";

const SHOWN = 10;

/** Who has done what to the type and to its tasks. */
export function TypeAudit({ type }: { type: string }) {
  const { data, error, refetch } = useQuery(auditQuery({ type, limit: SHOWN }));
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
            <li key={at} className="px-4 py-2">
              <p className="flex flex-wrap gap-x-2">
                <SafeText text={entry.actor} max={60} className="font-medium" />
                <SafeText text={entry.action} max={60} />
                <RelativeTime at={entry.at} className="text-dim" />
              </p>
              <SafeText
                as="p"
                text={detailOf(entry.detail)}
                max={200}
                className="truncate font-mono text-dim text-xs"
              />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function detailOf(detail: unknown): string {
  const text = stringify(detail, 0);
  return text === "{}" || text === "null" ? "" : text;
}
