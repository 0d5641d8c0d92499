import { useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useCallback, useState } from "react";
import { typesQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Input, Select } from "@/components/field";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { HeaderCell, Table } from "@/components/table";
import { useMedia } from "@/hooks/use-media";
import { useSession } from "@/hooks/use-session";
import { LimitsDialog } from "@/pages/types/limits-dialog";
import { NoTypes } from "@/pages/types/no-types";
import {
  COLUMNS,
  type Column,
  firstSorting,
  isStranded,
  type Sorting,
  sortedBy,
  sortTypes,
} from "@/pages/types/sorting";
import { TypeCard } from "@/pages/types/type-card";
import { TypeRow } from "@/pages/types/type-row";
import { plural } from "@/text/number";

const COLUMN_NAMES = Object.keys(COLUMNS) as Column[];
const FILTER_FROM = 8;
const LAST_HOUR = "Of the last hour: 95% took no longer";

export function TypesPage() {
  const { data, error, refetch } = useQuery(typesQuery);
  const { mayOperate } = useSession();
  const narrow = useMedia("(width < 78rem)");
  const [sorting, setSorting] = useState(firstSorting("type"));
  const [filter, setFilter] = useState("");
  const [limits, setLimits] = useState<string | null>(null);
  const openLimits = useCallback((type: string) => setLimits(type), []);
  const all = data?.types ?? [];
  const shown = sortTypes(all, sorting).filter(({ type }) => type.toLowerCase().includes(filter.toLowerCase()));
  const chosen = all.find(({ type }) => type === limits);
  const stranded = all.filter(isStranded).length;
  return (
    <>
      <PageHeader
        title="Types"
        actions={
          <>
            {narrow && all.length > 1 && (
              <Select
                aria-label="Order"
                title="Order"
                className="w-52"
                value={sorting.column}
                onChange={({ target }) => setSorting(firstSorting(target.value as Column))}
              >
                {COLUMN_NAMES.map((column) => (
                  <option key={column} value={column}>
                    {column === "type" ? "By name" : `${COLUMNS[column].label}, highest first`}
                  </option>
                ))}
              </Select>
            )}
            {all.length >= FILTER_FROM && (
              <Input
                type="search"
                aria-label="Filter types by name"
                placeholder="Filter by name"
                value={filter}
                onChange={(event) => setFilter(event.target.value)}
                className="w-52!"
              />
            )}
          </>
        }
      >
        {stranded > 0 && (
          <span className="text-failed">{plural(stranded, "type")} with waiting tasks and no live worker</span>
        )}
      </PageHeader>
      <Card flush>
        {error && !data ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading />
        ) : all.length === 0 ? (
          <NoTypes />
        ) : shown.length === 0 ? (
          <EmptyState title="No type has this in its name" />
        ) : narrow ? (
          <ul aria-label="Task types" className="divide-y">
            {shown.map((type) => (
              <TypeCard key={type.type} type={type} mayOperate={mayOperate} onLimits={openLimits} />
            ))}
          </ul>
        ) : (
          <Table label="Task types">
            <thead>
              <tr>
                {COLUMN_NAMES.map((column) => (
                  <SortingHeader key={column} column={column} sorting={sorting} onSort={setSorting} />
                ))}
                <HeaderCell className="px-2!">Limits</HeaderCell>
                <HeaderCell className="px-2!">Paused</HeaderCell>
              </tr>
            </thead>
            <tbody>
              {shown.map((type) => (
                <TypeRow key={type.type} type={type} mayOperate={mayOperate} onLimits={openLimits} />
              ))}
            </tbody>
          </Table>
        )}
      </Card>
      {chosen && <LimitsDialog key={chosen.type} type={chosen} onClose={() => setLimits(null)} />}
    </>
  );
}

interface SortingHeaderProps {
  column: Column;
  sorting: Sorting;
  onSort: (sorting: Sorting) => void;
}

function SortingHeader({ column, sorting, onSort }: SortingHeaderProps) {
  const sorted = sorting.column === column;
  const Icon = sorting.descending ? ArrowDown : ArrowUp;
  return (
    <HeaderCell
      aria-sort={sorted ? (sorting.descending ? "descending" : "ascending") : "none"}
      className={column === "type" ? "sticky left-0 bg-surface" : "px-2! text-right"}
      {...(column === "runP95" || column === "waitedP95" ? { title: LAST_HOUR } : {})}
    >
      <button
        type="button"
        onClick={() => onSort(sortedBy(sorting, column))}
        className="inline-flex items-center gap-1 rounded hover:text-text"
      >
        {COLUMNS[column].label}
        {sorted && <Icon className="size-3" aria-hidden="true" />}
      </button>
    </HeaderCell>
  );
}
