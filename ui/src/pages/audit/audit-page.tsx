import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { ScrollText } from "lucide-react";
import { auditQuery } from "@/api/queries";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { AuditFilters } from "@/pages/audit/audit-filters";
import { AuditLine } from "@/pages/audit/audit-line";
import { type AuditSearch, auditQueryOf } from "@/pages/audit/search";

const route = getRouteApi("/audit");

/** Who did what, newest first; a mass action is one line. */
export function AuditPage() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: "/audit" });
  const { data, error, refetch, isPlaceholderData } = useQuery(auditQuery(auditQueryOf(search)));
  const { cursor, ...filter } = search;
  const filtered = Object.keys(filter).length > 0;
  const go = (next: AuditSearch) => void navigate({ search: next });
  return (
    <>
      <PageHeader title="Audit">What people did here and on the command line, newest first.</PageHeader>
      <AuditFilters search={filter} onChange={go} />
      <Card flush>
        {error && !data ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading lines={8} />
        ) : data.entries.length === 0 ? (
          <EmptyState
            icon={ScrollText}
            title={filtered || cursor ? "Nothing matches" : "Nobody has done anything yet"}
            actions={(filtered || cursor) && <Button onClick={() => go({})}>Show everything</Button>}
          >
            {!filtered && !cursor && "Retries, cancels, pauses and the like show up here, with who did them."}
          </EmptyState>
        ) : (
          <ol aria-label="Actions, newest first" aria-busy={isPlaceholderData} className="divide-y">
            {data.entries.map((entry, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: entries have no name, and a page of them never moves
              <AuditLine key={`${entry.at} ${at}`} entry={entry} columns />
            ))}
          </ol>
        )}
      </Card>
      {data && (cursor || data.nextCursor) && (
        <nav aria-label="Pages of the audit trail" className="mt-3 flex justify-end gap-2">
          <Button reason={cursor ? null : "These are the newest."} onClick={() => go(filter)}>
            Newest
          </Button>
          <Button
            reason={data.nextCursor ? null : "There are no older ones."}
            onClick={() => go({ ...filter, cursor: data.nextCursor ?? "" })}
          >
            Older
          </Button>
        </nav>
      )}
    </>
  );
}
