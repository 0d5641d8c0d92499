import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useEffect, useState } from "react";
import { typesQuery } from "@/api/queries";
import { Button } from "@/components/button";
import { Input, Select } from "@/components/field";
import { Moment } from "@/components/moment";
import type { AuditSearch } from "@/pages/audit/search";
import { ACTIONS } from "@/pages/audit/sentence";
import { escapeText } from "@/text/escape";

export interface AuditFiltersProps {
  search: AuditSearch;
  onChange: (search: AuditSearch) => void;
}

export function AuditFilters({ search, onChange }: AuditFiltersProps) {
  const { data } = useQuery(typesQuery);
  const types = data?.types.map(({ type }) => type) ?? [];
  const offered = !search.type || types.includes(search.type) ? types : [search.type, ...types];
  const actions = !search.action || search.action in ACTIONS ? Object.keys(ACTIONS) : [search.action];

  function set(name: keyof AuditSearch, value: string | null) {
    const { [name]: _, ...rest } = search;
    onChange(value ? { ...rest, [name]: value } : rest);
  }

  return (
    <search className="mb-4 flex flex-wrap items-center gap-x-3 gap-y-2">
      <Person value={search.actor ?? ""} onChange={(actor) => set("actor", actor)} />
      <Select
        aria-label="Action"
        className="w-48 max-md:w-auto max-md:grow max-md:basis-36"
        value={search.action ?? ""}
        onChange={({ target }) => set("action", target.value)}
      >
        <option value="">All actions</option>
        {actions.map((action) => (
          <option key={action} value={action}>
            {ACTIONS[action] ?? escapeText(action).slice(0, 60)}
          </option>
        ))}
      </Select>
      <Select
        aria-label="Type"
        className="w-48 max-md:w-auto max-md:grow max-md:basis-36"
        value={search.type ?? ""}
        onChange={({ target }) => set("type", target.value)}
      >
        <option value="">All types</option>
        {offered.map((type) => (
          <option key={type} value={type}>
            {escapeText(type.length > 60 ? `${type.slice(0, 60)}…` : type)}
          </option>
        ))}
      </Select>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 max-md:w-full">
        <Moment label="From" at={search.after ?? null} onChange={(after) => set("after", after)} />
        <Moment label="To" at={search.before ?? null} onChange={(before) => set("before", before)} />
      </div>
      {search.bulk && (
        <Button
          size="small"
          icon={<X className="size-3.5" aria-hidden="true" />}
          onClick={() => set("bulk", null)}
          aria-label="Show other actions, too"
        >
          One mass action
        </Button>
      )}
    </search>
  );
}

/** Set when it is left or confirmed, not at each letter. */
function Person({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]);
  const apply = () => draft.trim() !== value && onChange(draft.trim());
  return (
    <Input
      type="search"
      aria-label="Person"
      placeholder="Person: the label of a token"
      className="w-60! max-md:w-full!"
      value={draft}
      onChange={({ target }) => setDraft(target.value)}
      onBlur={apply}
      onKeyDown={({ key }) => key === "Enter" && apply()}
    />
  );
}
