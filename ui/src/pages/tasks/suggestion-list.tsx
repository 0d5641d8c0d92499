import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";
import type { Suggestion, Suggestions } from "@/pages/tasks/search/suggest";

export interface SuggestionListProps {
  id: string;
  found: Suggestions;
  active: number;
  hidden: boolean;
  onTake: (suggestion: Suggestion) => void;
}

/** Below the search field, which keeps the focus. */
export function SuggestionList({ id, found, active, hidden, onTake }: SuggestionListProps) {
  return (
    <div
      hidden={hidden}
      className="absolute inset-x-0 top-full z-20 mt-1 overflow-hidden rounded-lg border bg-surface shadow-lg"
    >
      <div id={id} role="listbox" aria-label="Suggestions" className="max-h-80 overflow-y-auto p-1">
        {!hidden &&
          found.options.map((option, at) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the field's aria-activedescendant names it
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
            <div
              key={option.text}
              id={`${id}-${at}`}
              role="option"
              aria-selected={at === active}
              ref={(row) => {
                if (row && at === active) row.scrollIntoView({ block: "nearest" });
              }}
              onPointerDown={(event) => event.preventDefault()} // the field keeps the focus
              onClick={() => onTake(option)}
              className={classes(
                "flex cursor-pointer items-baseline gap-3 rounded-md px-2 py-1.5 hover:bg-raised",
                at === active && "bg-raised",
              )}
            >
              <SafeText text={option.text} max={80} className="min-w-0 truncate font-mono text-xs" />
              <span className="min-w-0 truncate text-dim text-xs">{option.detail}</span>
            </div>
          ))}
      </div>
      {found.hint && <p className="px-3 py-2 text-dim text-xs">{found.hint}</p>}
    </div>
  );
}
