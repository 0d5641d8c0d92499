import { Columns3 } from "lucide-react";
import { IconButton } from "@/components/button";
import { Select } from "@/components/field";
import { Menu, MenuCheck, MenuItem, MenuLabel, MenuSeparator } from "@/components/menu";
import { COLUMN_IDS, type ColumnId, LABELS, USUAL } from "@/pages/tasks/column-choice";
import { ORDERS, type Order } from "@/pages/tasks/order";
import type { Sorting } from "@/pages/tasks/sort-button";

export interface ListOptionsProps {
  columns: readonly ColumnId[];
  onColumns: (columns: readonly ColumnId[]) => void;
  sorting: Sorting;
}

/** The order of the list, and what it shows of each task. */
export function ListOptions({ columns, onColumns, sorting }: ListOptionsProps) {
  return (
    <>
      <Select
        aria-label="Order"
        title="Order"
        className="w-37"
        value={sorting.order}
        onChange={({ target }) => sorting.onOrder(target.value as Order)}
      >
        {(Object.keys(ORDERS) as Order[]).map((order) => (
          <option key={order} value={order} disabled={sorting.obstacle(order) !== null}>
            {ORDERS[order].option}
          </option>
        ))}
      </Select>
      <Menu
        label="Columns"
        trigger={
          <IconButton label="Columns">
            <Columns3 className="size-4" aria-hidden="true" />
          </IconButton>
        }
      >
        <MenuLabel>Shown of each task, beside ID, type and status</MenuLabel>
        {columns === USUAL && (
          <div className="hidden min-[54rem]:max-xl:block">
            <MenuLabel>This window has no room for some of them.</MenuLabel>
          </div>
        )}
        {COLUMN_IDS.map((id) => (
          <MenuCheck
            key={id}
            checked={columns.includes(id)}
            onChange={(on) => onColumns(on ? [...columns, id] : columns.filter((each) => each !== id))}
          >
            {LABELS[id]}
          </MenuCheck>
        ))}
        <MenuSeparator />
        <MenuItem onSelect={() => onColumns(USUAL)}>The usual columns</MenuItem>
      </Menu>
    </>
  );
}
