import { ExactNumber, stringify } from "@/api/exact";
import { SafeText } from "@/components/safe-text";
import { TasksWith } from "@/pages/task/list-link";

/** Each leads to the tasks that have it too. Lists and objects cannot be searched for. */
export function Tags({ tags }: { tags: Record<string, unknown> }) {
  return (
    <ul className="flex flex-wrap gap-1">
      {Object.entries(tags).map(([name, value]) => {
        const text = typeof value === "string" ? value : stringify(value, 0);
        const label = <SafeText text={`${name}=${text}`} max={120} className="break-all" />;
        return (
          <li key={name} className="max-w-full rounded-md border bg-raised px-1.5 text-xs leading-5">
            {isWritten(value) ? <TasksWith q={{ tag: `${name}=${text}` }}>{label}</TasksWith> : label}
          </li>
        );
      })}
    </ul>
  );
}

/** Whether a search can say it. */
function isWritten(value: unknown): boolean {
  return value === null || typeof value !== "object" || value instanceof ExactNumber;
}
