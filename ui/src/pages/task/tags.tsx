import { stringify } from "@/api/exact";
import { SafeText } from "@/components/safe-text";
import { TasksWith } from "@/pages/task/list-link";

/** Each leads to the tasks that have it too. Only text can be searched for. */
export function Tags({ tags }: { tags: Record<string, unknown> }) {
  return (
    <ul className="flex flex-wrap gap-1">
      {Object.entries(tags).map(([name, value]) => {
        const text = typeof value === "string" ? value : stringify(value, 0);
        const label = <SafeText text={`${name}=${text}`} max={120} className="break-all" />;
        return (
          <li key={name} className="max-w-full rounded-md border bg-raised px-1.5 text-xs leading-5">
            {typeof value === "string" ? <TasksWith q={{ tag: `${name}=${value}` }}>{label}</TasksWith> : label}
          </li>
        );
      })}
    </ul>
  );
}
