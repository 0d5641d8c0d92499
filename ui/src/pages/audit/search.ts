/** What the page of the audit trail shows is in its address, so that it can be sent to somebody. */
import type { AuditQuery } from "@/api/model";

export interface AuditSearch {
  actor?: string;
  action?: string;
  type?: string;
  after?: string;
  before?: string;
  /** One mass action. */
  bulk?: string;
  cursor?: string;
}

const NAMES = ["actor", "action", "type", "after", "before", "bulk", "cursor"] as const;

export function readAuditSearch(given: Record<string, string>): AuditSearch {
  return Object.fromEntries(NAMES.flatMap((name) => (given[name] ? [[name, given[name]]] : [])));
}

export const PAGE = 50;

export function auditQueryOf({ bulk, ...rest }: AuditSearch): AuditQuery {
  return { ...rest, ...(bulk ? { bulkId: bulk } : {}), folded: true, limit: PAGE };
}
