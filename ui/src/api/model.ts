/** Short names for the types of the API, as generated from its OpenAPI file. */
import type { components, operations } from "@/api/schema";

type Schemas = components["schemas"];

export type About = Schemas["About"];
export type Audit = Schemas["Audit"];
export type AuditEntry = Schemas["AuditView"];
export type AuditQuery = NonNullable<operations["get_audit"]["parameters"]["query"]>;
export type Attempt = Schemas["Attempt"];
export type BulkDone = Schemas["BulkDone"];
export type BulkFilter = Schemas["BulkFilter"];
export type BulkAction = operations["bulk_action"]["parameters"]["path"]["action"];
export type CleanUpQuery = operations["clean_up"]["parameters"]["query"];
export type Control = Schemas["ControlView"];
export type Controls = Schemas["ControlsView"];
export type ControlSet = Partial<Schemas["ControlSet"]>;
export type Counts = Schemas["Counts"];
export type Distribution = Schemas["Distribution"];
export type FailureGroup = Schemas["FailureGroup"];
export type Flow = Schemas["FlowView"];
export type FlowCounts = Schemas["FlowCounts"];
export type FlowDetail = Schemas["FlowDetail"];
export type FlowNode = Schemas["FlowNode"];
export type LinkedTasks = Schemas["LinkedTasks"];
export type Schedule = Schemas["ScheduleView"];
export type ScheduleRun = Schemas["RunView"];
export type ScheduleTimes = Partial<Pick<Schemas["ScheduleSet"], "cron" | "every" | "timezone">>;
export type ScheduleSet = Partial<Schemas["ScheduleSet"]>;
export type Problem = Schemas["Problem"];
export type Series = Schemas["Series"];
export type SeriesPoint = Schemas["SeriesPoint"];
export type SeriesQuery = NonNullable<operations["get_series"]["parameters"]["query"]>;
export type Session = Schemas["Session"];
export type Stats = Schemas["Stats"];
export type ListedTask = Schemas["ListedTask"];
export type Task = Schemas["TaskView"];
export type SubmitOptions = Schemas["Options"];
export type TaskDetail = Schemas["TaskDetail"];
export type TaskPage = Schemas["TaskPage"];
export type TaskQuery = NonNullable<operations["list_tasks"]["parameters"]["query"]>;
export type TaskStatus = Schemas["Status"];
export type TaskType = Schemas["TypeView"];
export type WaitingReason = Schemas["WaitingReason"];
export type Worker = Schemas["WorkerView"];
export type WorkerDetail = Schemas["WorkerDetail"];

export const STATUSES = ["pending", "processing", "completed", "failed", "cancelled"] as const satisfies TaskStatus[];
