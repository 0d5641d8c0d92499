import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { addressOf } from "@/api/place";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Input } from "@/components/field";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { type ApiDocument, documentQuery, endpointsOf, grouped, matches } from "@/pages/api-docs/document";
import { EndpointItem } from "@/pages/api-docs/endpoint";
import { plural } from "@/text/number";

/** What the server says of its own API: nothing here is written by hand. */
export function ApiDocsPage() {
  const { data, error, refetch } = useQuery(documentQuery);
  const { q = "", operation } = useSearch({ from: "/api/docs" });
  const navigate = useNavigate({ from: "/api/docs" });
  const all = data ? endpointsOf(data) : [];
  const found = data ? all.filter((endpoint) => matches(data, endpoint, q)) : [];

  function go(search: { q?: string | undefined; operation?: string | undefined }) {
    const next = { q, operation, ...search };
    void navigate({
      search: { ...(next.q ? { q: next.q } : {}), ...(next.operation ? { operation: next.operation } : {}) },
      replace: true,
      resetScroll: false,
    });
  }

  return (
    <>
      <PageHeader
        title="HTTP API"
        actions={
          <Input
            type="search"
            data-search
            aria-label="Search the API"
            placeholder="Path, parameter, field"
            value={q}
            onChange={(event) => go({ q: event.target.value })}
            className="w-64!"
          />
        }
      >
        {data && (
          <>
            {q ? `${found.length} of ${plural(all.length, "operation")}` : plural(all.length, "operation")}. As a file:{" "}
            <a href={addressOf("openapi.json")} className="text-accent underline">
              openapi.json
            </a>
          </>
        )}
      </PageHeader>
      {error && !data ? (
        <Card>
          <ErrorState error={error} onRetry={refetch} />
        </Card>
      ) : !data ? (
        <Loading />
      ) : found.length === 0 ? (
        <Card>
          <EmptyState title="Nothing in the API has these words" />
        </Card>
      ) : (
        <Groups document={data} endpoints={found} open={operation} onToggle={(id) => go({ operation: id })} />
      )}
    </>
  );
}

interface GroupsProps {
  document: ApiDocument;
  endpoints: ReturnType<typeof endpointsOf>;
  open: string | undefined;
  onToggle: (id: string | undefined) => void;
}

function Groups({ document, endpoints, open, onToggle }: GroupsProps) {
  return (
    <div className="space-y-4">
      {grouped(endpoints).map(([group, members]) => (
        <Card key={group} flush title={<span className="capitalize">{group}</span>}>
          <ul className="divide-y">
            {members.map((endpoint) => (
              <EndpointItem
                key={endpoint.id}
                document={document}
                endpoint={endpoint}
                open={open === endpoint.id}
                onToggle={(id) => onToggle(open === id ? undefined : id)}
              />
            ))}
          </ul>
        </Card>
      ))}
    </div>
  );
}
