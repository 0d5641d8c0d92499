import { Bookmark, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button, IconButton } from "@/components/button";
import { Dialog } from "@/components/dialog";
import { Field, Input } from "@/components/field";
import { SafeText } from "@/components/safe-text";
import { forgetSearch, LONGEST_NAME, type SavedSearch, savedSearches, saveSearch } from "@/pages/tasks/saved-searches";

export interface SavedSearchesProps {
  /** What is shown now. */
  current: SavedSearch["search"];
  onOpen: (search: SavedSearch["search"]) => void;
}

export function SavedSearches({ current, onOpen }: SavedSearchesProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button icon={<Bookmark className="size-4" aria-hidden="true" />} onClick={() => setOpen(true)}>
        <span className="max-md:sr-only">Saved</span>
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title="Saved searches"
        description="Kept in this browser, with their columns and their order. To share one, send its address."
      >
        <Saved
          current={current}
          onOpen={(search) => {
            setOpen(false);
            onOpen(search);
          }}
        />
      </Dialog>
    </>
  );
}

function Saved({ current, onOpen }: SavedSearchesProps) {
  const [all, setAll] = useState(savedSearches);
  const [name, setName] = useState("");
  const [refused, setRefused] = useState(false);

  function changed(kept: boolean) {
    setRefused(!kept);
    setAll(savedSearches());
  }

  function save(event: FormEvent) {
    event.preventDefault();
    if (name.trim() === "") return;
    changed(saveSearch({ name: name.trim(), search: current }));
    setName("");
  }

  return (
    <div className="space-y-4">
      {all.length === 0 ? (
        <p className="text-dim">There are none yet.</p>
      ) : (
        <ul aria-label="Saved searches" className="divide-y rounded-md border">
          {all.map((saved) => (
            <li key={saved.name} className="flex items-center gap-1 pr-1">
              <button
                type="button"
                onClick={() => onOpen(saved.search)}
                className="min-w-0 grow rounded-md px-3 py-2 text-left hover:bg-raised"
              >
                <SafeText text={saved.name} max={LONGEST_NAME} className="block truncate font-medium" />
                <SafeText
                  text={saved.search.q ?? "all tasks"}
                  max={200}
                  className="block truncate font-mono text-dim text-xs"
                />
              </button>
              <IconButton label={`Forget ${saved.name}`} size="small" onClick={() => changed(forgetSearch(saved.name))}>
                <Trash2 className="size-3.5" aria-hidden="true" />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      <form onSubmit={save} className="flex items-end gap-2">
        <div className="min-w-0 grow">
          <Field label="Save this search as">
            <Input value={name} maxLength={LONGEST_NAME} onChange={({ target }) => setName(target.value)} />
          </Field>
        </div>
        <Button type="submit" tone="accent" reason={name.trim() === "" ? "Give it a name first." : null}>
          Save
        </Button>
      </form>
      {refused && (
        <p role="alert" className="text-failed">
          This browser does not keep anything for this page.
        </p>
      )}
    </div>
  );
}
