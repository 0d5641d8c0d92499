import { useQuery } from "@tanstack/react-query";
import { useId, useMemo } from "react";
import type { TaskPage } from "@/api/model";
import { statsQuery, typesQuery, workersQuery } from "@/api/queries";
import { FilterBar } from "@/pages/tasks/filter-bar";
import { type Parsed, write } from "@/pages/tasks/search/filter";
import { notesOn } from "@/pages/tasks/search/notes";
import type { Known } from "@/pages/tasks/search/suggest";
import { SearchBox } from "@/pages/tasks/search-box";
import { SearchNotes } from "@/pages/tasks/search-notes";

export interface SearchBarProps {
  text: string;
  parsed: Parsed;
  /** What is shown, once it is there: its tags are suggested. */
  page: TaskPage | undefined;
  /** What else is to be told. */
  more: string | null;
  onSearch: (text: string) => void;
}

/** The search as text and as controls; both say the same. */
export function SearchBar({ text, parsed, page, more, onSearch }: SearchBarProps) {
  const notesId = useId();
  const { data: stats } = useQuery(statsQuery);
  const types = useQuery(typesQuery).data?.types;
  const workers = useQuery(workersQuery()).data?.workers;
  const known = useMemo<Known>(
    () => ({
      types: (types ?? []).map(({ type }) => type).sort(),
      workers: (workers ?? []).filter(({ live }) => live).map(({ id }) => id),
      tags: tagsOf(page),
    }),
    [types, workers, page],
  );
  const { filter, problems } = parsed;
  const told = more === null ? [] : [more];
  return (
    <div className="mb-3 space-y-2">
      <SearchBox text={text} known={known} onSearch={onSearch} invalid={problems.length > 0} describedBy={notesId} />
      <FilterBar filter={filter} types={known.types} stats={stats} onFilter={(next) => onSearch(write(next))} />
      <SearchNotes
        id={notesId}
        text={text}
        problems={problems}
        notes={problems.length > 0 ? [] : [...notesOn(filter, types && workers ? known : null, page), ...told]}
        onSearch={onSearch}
      />
    </div>
  );
}

function tagsOf(page: TaskPage | undefined): string[] {
  const found = (page?.tasks ?? []).flatMap(({ tags }) =>
    Object.entries(tags).flatMap(([key, value]) =>
      (value === null || typeof value !== "object") && !/[:=]/.test(key) ? [`${key}=${value}`] : [],
    ),
  );
  return [...new Set(found)].sort();
}
