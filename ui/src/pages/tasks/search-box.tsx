import { Search, X } from "lucide-react";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { IconButton } from "@/components/button";
import { accept, type Known, type Suggestion, suggest } from "@/pages/tasks/search/suggest";
import { SuggestionList } from "@/pages/tasks/suggestion-list";

export interface SearchBoxProps {
  /** The search that is shown below. */
  text: string;
  known: Known;
  onSearch: (text: string) => void;
  invalid: boolean;
  /** The id of what tells the problems. */
  describedBy: string;
}

/** A text field with suggestions, by the ARIA pattern of an editable combobox with a list. */
export function SearchBox({ text, known, onSearch, invalid, describedBy }: SearchBoxProps) {
  const listId = useId();
  const field = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState(text);
  const [caret, setCaret] = useState(text.length);
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  useEffect(() => setDraft(text), [text]);

  const found = suggest(draft, caret, known);
  const shown = open && (found.options.length > 0 || found.hint !== null);
  const chosen = shown ? found.options[active] : undefined;

  function search(next: string) {
    setOpen(false);
    setActive(-1);
    setDraft(next);
    onSearch(next.trim());
  }

  function take(suggestion: Suggestion) {
    const next = accept(draft, found, suggestion);
    setCaret(next.caret);
    setActive(-1);
    if (suggestion.whole) search(next.text);
    else setDraft(next.text);
    requestAnimationFrame(() => field.current?.setSelectionRange(next.caret, next.caret));
    field.current?.focus();
  }

  function move(by: number) {
    const count = found.options.length;
    setOpen(true);
    if (count > 0) setActive((at) => (at < 0 && by < 0 ? count - 1 : (at + by + count) % count));
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter") chosen ? take(chosen) : search(draft);
    else if (event.key === "Tab" && chosen && !event.shiftKey) take(chosen);
    else if (event.key === "Escape" && shown) setOpen(false);
    else if (event.key === "Escape") field.current?.blur();
    else return;
    event.preventDefault();
  }

  return (
    <search className="relative min-w-0 grow">
      <Search className="pointer-events-none absolute top-2.5 left-2.5 size-4 text-faint" aria-hidden="true" />
      <input
        ref={field}
        data-search=""
        type="text"
        role="combobox"
        aria-label="Search tasks"
        aria-expanded={shown}
        aria-controls={listId}
        aria-autocomplete="list"
        aria-invalid={invalid}
        aria-describedby={describedBy}
        {...(chosen ? { "aria-activedescendant": `${listId}-${active}` } : {})}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        enterKeyHint="search"
        placeholder='Search: 4711, type:send_email status:failed error:"timed out"'
        value={draft}
        onChange={(event) => {
          setDraft(event.target.value);
          setCaret(event.target.selectionStart ?? event.target.value.length);
          setOpen(true);
          setActive(-1);
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? 0)}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
        className="h-9 w-full rounded-md border border-line-strong bg-surface pr-9 pl-8.5 font-mono text-xs placeholder:font-sans placeholder:text-faint max-md:text-base aria-invalid:border-failed"
      />
      {draft !== "" && (
        <IconButton
          label="Clear the search"
          size="small"
          className="absolute! top-1 right-1"
          onClick={() => search("")}
        >
          <X className="size-3.5" aria-hidden="true" />
        </IconButton>
      )}
      <SuggestionList id={listId} found={found} active={active} hidden={!shown} onTake={take} />
    </search>
  );
}
