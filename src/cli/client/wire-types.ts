// Generated from src/http/openapi-rpc.ts and scripts/reference/events-table.mjs by `npm run docs`. Change the source, not this file.

/** A task as it is now. */
export interface Task {
  /** the id of the task */
  readonly task_id: string;
  /** one line */
  readonly title: string;
  /** what to do */
  readonly description: string;
  /** queued, started, complete, failed, cancelled, or a status of the tracker */
  readonly status: 'queued' | 'started' | 'complete' | 'failed' | 'cancelled' | (string & {});
  /** status in the tracker of a task that was asked to run and is not open there */
  readonly tracker_status?: string | undefined;
  /** who holds it in the tracker, where that is somebody else; reopen releases it */
  readonly held_by?: string | undefined;
  /** what it does or waits for; the status when it is over */
  readonly phase: 'waiting_for_run' | 'waiting_for_person' | 'waiting_for_dependencies' | 'waiting_for_slot' | 'waiting_for_tracker' | 'preparing' | 'thinking' | 'acting' | 'awaiting_input' | 'awaiting_approval' | 'backing_off' | 'verifying' | 'closing' | 'cancelling' | (string & {});
  /** whether it can be run now */
  readonly ready: boolean;
  /** the role of the latest run */
  readonly role?: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | undefined;
  /** number of the latest attempt; 0 before the first */
  readonly attempt: number;
  /** the number of the last attempt that may follow by itself; absent without a run */
  readonly max_attempts?: number | undefined;
  /** the limit of turns of a live attempt */
  readonly max_turns?: number | undefined;
  /** the tool calls that a live attempt makes now: a tool and its first argument; in a pause, why the model call or the last attempt failed */
  readonly activity?: string | undefined;
  /** the tasks that it depends on */
  readonly dependencies: readonly string[];
  /** those of them that are not complete */
  readonly unmet_dependencies: readonly string[];
  /** 0 (first) to 4 (last) */
  readonly priority: number;
  /** its labels */
  readonly labels: readonly string[];
  /** the issue that it came from */
  readonly source?: {
    /** the kind of forge */
    readonly type: 'github';
    /** the page of the issue */
    readonly url: string;
    /** its number */
    readonly number: number;
  } | undefined;
  /** when it was created */
  readonly created_at: string;
  /** when it changed last */
  readonly updated_at: string;
  /** when the latest attempt started */
  readonly started_at?: string | undefined;
  /** when it ended */
  readonly completed_at?: string | undefined;
  /** since when the attempt waits for a person, or after that for its slot */
  readonly waits_since?: string | undefined;
  /** how long the latest attempt waited for persons or for the end of a limit, up to waits_since or its end; no part of its time */
  readonly waited_seconds?: number | undefined;
  /** from 0 to 1; never falls within an attempt */
  readonly progress: number;
  /** when a task that waits for the end of a limit of the provider, or of a budget, goes on by itself; of the budget of a run, when it is looked at again */
  readonly parked_until?: string | undefined;
  /** why it waits for that; for a budget, its key first: budget.day_usd */
  readonly parked_reason?: string | undefined;
  /** the summary of the agent */
  readonly result?: string | undefined;
  /** the results file, inside the project */
  readonly results_path?: string | undefined;
  /** why the last attempt failed or the last request was refused */
  readonly error?: {
    /** the name of the error */
    readonly code: string;
    /** what is wrong and what to do */
    readonly message: string;
    /** the facts, by name */
    readonly facts: {
      readonly [key: string]: unknown;
    };
  } | undefined;
  /** why a person reopened or retried it */
  readonly request_reason?: string | undefined;
  /** why it was closed, if no attempt completed it */
  readonly close_reason?: string | undefined;
  /** what people said about its work */
  readonly review?: {
    /** of the latest review */
    readonly verdict: 'comment' | 'request_changes' | 'approve';
    /** in the order in which they were given */
    readonly comments: readonly {
      readonly id: number;
      /** the attempt whose changes it is about */
      readonly attempt: number;
      readonly path: string;
      readonly line?: number | undefined;
      readonly end_line?: number | undefined;
      readonly text: string;
      /** the comment or check of its pull request */
      readonly source?: string | undefined;
      /** whether an attempt has yet to answer it */
      readonly open: boolean;
      /** the agent's answer */
      readonly answer?: string | undefined;
      /** the attempt that answered */
      readonly answered_by?: number | undefined;
    }[];
  } | undefined;
  /** what the attempt waits for a person for */
  readonly awaiting?: {
    /** send it with respond */
    readonly input_id: string;
    /** a question, or calls that need approval */
    readonly kind: 'input' | 'approval';
    /** the question */
    readonly question: string;
    /** the calls that need approval */
    readonly calls: readonly {
      readonly call_id: string;
      readonly tool: string;
      readonly arguments: string;
    }[];
    /** when it is too late to answer; absent: there is no limit */
    readonly deadline?: string | undefined;
    /** the answer that counts at the deadline; absent: the attempt fails */
    readonly default_answer?: string | undefined;
  } | undefined;
  /** what the latest attempt used */
  readonly usage: {
    /** tokens that the model read */
    readonly input_tokens: number;
    /** tokens that the model wrote */
    readonly output_tokens: number;
    /** input tokens that the provider had cached */
    readonly cached_tokens: number;
    /** input tokens that the provider wrote to its cache; absent where none */
    readonly cache_write_tokens?: number | undefined;
    /** calls of the model */
    readonly model_calls: number;
    /** calls of tools */
    readonly tool_calls: number;
    /** turns */
    readonly turns: number;
    /** that the agent does not tell its tokens, so the counts are too low */
    readonly tokens_unknown?: true | undefined;
    /** cost in USD; absent where the price is unknown */
    readonly cost_usd?: number | undefined;
  };
  /** what the latest attempt changed, in the answers to status and, if complete, list */
  readonly work?: {
    /** the branch of the attempt; absent: none has changes of it */
    readonly branch?: string | undefined;
    /** its tip */
    readonly commit?: string | undefined;
    /** files that it changed */
    readonly files: number;
    /** lines that it added */
    readonly insertions: number;
    /** lines that it removed */
    readonly deletions: number;
    /** when it was merged; absent: it was not */
    readonly merged_at?: string | undefined;
    /** the commit of your branch that has it */
    readonly merge_commit?: string | undefined;
    /** what to know before it is merged */
    readonly notes?: readonly string[] | undefined;
    /** when a person discarded it: it is not merged or built on */
    readonly discarded_at?: string | undefined;
    /** that it had landed and was taken back: the task is open again */
    readonly undone?: true | undefined;
    /** what is not on the branch */
    readonly left?: readonly {
      /** a file or folder */
      readonly path?: string | undefined;
      /** a branch, tag, stash or commit of the agent's own git */
      readonly ref?: string | undefined;
      /** why, or where it is */
      readonly reason: string;
      /** its size */
      readonly bytes?: number | undefined;
    }[] | undefined;
    /** that the attempt did not complete it: it is merged only with force */
    readonly incomplete?: true | undefined;
    /** work of other tasks that it began without, since it conflicted */
    readonly conflicts?: readonly {
      readonly task_id: string;
      readonly branch: string;
      readonly files: readonly string[];
    }[] | undefined;
    /** what passed on the tree that your branch got with it */
    readonly tested?: {
      /** all of them passed */
      readonly commands: readonly string[];
      /** when that tree passed */
      readonly tested_at: string;
      /** how long that took, with its setup */
      readonly tested_seconds: number;
    } | undefined;
    /** unmerged work of other tasks that it will conflict with, and the files */
    readonly conflicts_with?: readonly {
      readonly task_id: string;
      readonly paths: readonly string[];
    }[] | undefined;
    /** its merge; absent: nobody asked for one */
    readonly merge?: {
      /** in the queue of merges (waiting, testing), or what came of it */
      readonly state: 'waiting' | 'testing' | 'landed' | 'refused';
      /** tasks with whose work, which landed, it does not pass */
      readonly with?: readonly string[] | undefined;
      /** why it was refused */
      readonly message?: string | undefined;
      /** the command that did not pass with it */
      readonly command?: string | undefined;
      /** the end of what that command printed */
      readonly output?: string | undefined;
      /** the files that conflict, at most 100 */
      readonly paths?: readonly string[] | undefined;
      /** that an update goes on with it; absent: what is in the way is not its work */
      readonly updatable?: true | undefined;
    } | undefined;
  } | undefined;
  /** its pull request at the forge, in the answers to status and list */
  readonly pull_request?: {
    /** its number at the forge */
    readonly number?: number | undefined;
    /** its page */
    readonly url?: string | undefined;
    /** closed: a person closed it; abandoned: its task is over without it */
    readonly state: 'publishing' | 'open' | 'merging' | 'merged' | 'closed' | 'abandoned';
    /** of its head */
    readonly checks?: 'pending' | 'red' | 'green' | 'none' | undefined;
    /** what people with a say decided */
    readonly review?: 'none' | 'changes' | 'approved' | undefined;
    /** whether it fits its base; unknown: the forge has not worked it out */
    readonly mergeable?: 'yes' | 'behind' | 'conflicting' | 'unknown' | undefined;
    /** how many attempts the forge asked for */
    readonly round: number;
    /** its newest commit */
    readonly head_sha?: string | undefined;
    /** who or what is next */
    readonly waits_for?: 'checks' | 'review' | 'person' | 'forge' | 'limit' | undefined;
    /** what the forge refused: limit, right, token, gone, moved, refused or away */
    readonly fault?: string | undefined;
    /** why it is not merged yet */
    readonly reason?: string | undefined;
  } | undefined;
  /** the attempts that are over, in the answer to status */
  readonly attempts?: readonly {
    /** its number */
    readonly attempt: number;
    /** the role that worked */
    readonly role: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {});
    /** complete, failed or cancelled */
    readonly status: 'complete' | 'failed' | 'cancelled' | (string & {});
    /** when it ended */
    readonly ended_at: string;
    /** how long it took */
    readonly seconds: number;
    /** calls of the model */
    readonly model_calls: number;
    /** calls of tools */
    readonly tool_calls: number;
    /** tokens that the model read */
    readonly input_tokens: number;
    /** tokens that the model wrote */
    readonly output_tokens: number;
    /** input tokens that the provider had cached */
    readonly cached_tokens: number;
    /** input tokens that the provider wrote to its cache; absent where none */
    readonly cache_write_tokens?: number | undefined;
    /** cost in USD; absent where unknown */
    readonly cost_usd?: number | undefined;
    /** when its work was merged; absent: it was not */
    readonly merged_at?: string | undefined;
  }[] | undefined;
  /** images that a person attached, in the answers to status and create */
  readonly attachments?: readonly {
    /** SHA-256 of its bytes, hexadecimal */
    readonly digest: string;
    /** its file as the person called it; may be empty */
    readonly name: string;
    /** by its first bytes */
    readonly media_type: 'image/png' | 'image/jpeg' | 'image/webp';
    /** its size */
    readonly bytes: number;
  }[] | undefined;
  /** that its journal was removed because it was old; absent: it was not */
  readonly history_removed?: {
    /** the last entry that was removed */
    readonly through_seq: number;
    /** when */
    readonly at: string;
    /** store.retention_days at that time */
    readonly after_days: number;
  } | undefined;
  /** path of its stream */
  readonly stream_url: string;
}

/** The methods of the server, with what they take and answer. */
export interface Methods {
  /** runs a role on a task; answers when the run is accepted */
  readonly execute: {
    readonly params: {
      /** the id of a task, or the text of a new one */
      readonly task_id?: string | undefined;
      /** the same as task_id */
      readonly task?: string | undefined;
      /** the role that works on the task */
      readonly role: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {});
      /** limits and settings of this run */
      readonly options?: {
        /** the model to call */
        readonly model?: string | undefined;
        /** time limit of the attempt */
        readonly timeout_seconds?: number | undefined;
        /** turns of the attempt */
        readonly max_turns?: number | undefined;
        /** input and output tokens of the attempt */
        readonly max_tokens_total?: number | undefined;
        /** cost of the attempt in USD */
        readonly max_cost_usd?: number | undefined;
        /** commands that must pass before completion */
        readonly verify?: readonly string[] | undefined;
        /** now (default): refused while a dependency is not complete; ready: starts when all are complete */
        readonly when?: 'now' | 'ready' | undefined;
        /** commands may reach the network; needs sandbox.allow_task_network */
        readonly network?: boolean | undefined;
        /** a pull request is opened when it is complete; needs workspace.merge none */
        readonly publish?: boolean | undefined;
      } | undefined;
      /** a repeated request with the same id starts nothing and gets the first answer */
      readonly request_id?: string | undefined;
    };
    readonly result: {
      readonly task_id: string;
      readonly role: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {});
      readonly status: 'queued' | 'started' | 'complete' | 'failed' | 'cancelled' | (string & {});
      readonly phase: 'waiting_for_run' | 'waiting_for_person' | 'waiting_for_dependencies' | 'waiting_for_slot' | 'waiting_for_tracker' | 'preparing' | 'thinking' | 'acting' | 'awaiting_input' | 'awaiting_approval' | 'backing_off' | 'verifying' | 'closing' | 'cancelling' | (string & {});
      readonly attempt: number;
      readonly message: string;
      readonly stream_url: string;
      readonly created_at: string;
    };
  };
  /** starts tasks with all that they depend on, each when its dependencies are complete */
  readonly run: {
    readonly params: {
      /** these tasks and all that they depend on; default: every open task */
      readonly task_ids?: readonly string[] | undefined;
      /** for tasks without the label role:<role> that no role ran before */
      readonly role?: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {}) | undefined;
      /** limits and settings of each run */
      readonly options?: {
        /** the model to call */
        readonly model?: string | undefined;
        /** time limit of the attempt */
        readonly timeout_seconds?: number | undefined;
        /** turns of the attempt */
        readonly max_turns?: number | undefined;
        /** input and output tokens of the attempt */
        readonly max_tokens_total?: number | undefined;
        /** cost of the attempt in USD */
        readonly max_cost_usd?: number | undefined;
        /** commands that must pass before completion */
        readonly verify?: readonly string[] | undefined;
        /** now (default): refused while a dependency is not complete; ready: starts when all are complete */
        readonly when?: 'now' | 'ready' | undefined;
        /** commands may reach the network; needs sandbox.allow_task_network */
        readonly network?: boolean | undefined;
        /** a pull request is opened when it is complete; needs workspace.merge none */
        readonly publish?: boolean | undefined;
      } | undefined;
      /** what all tasks of this run may cost together, in USD; default: budget.run_usd */
      readonly max_cost_usd?: number | undefined;
      /** only tasks with all of these labels, and what they depend on */
      readonly labels?: readonly string[] | undefined;
      /** only tasks with this priority, and what they depend on */
      readonly priority?: number | undefined;
      /** start at most as many, dependencies included; the first priority first */
      readonly limit?: number | undefined;
      /** start nothing; the answer has the tasks that would start, in their order */
      readonly dry_run?: boolean | undefined;
      /** a repeated request with the same id starts nothing and gets the first answer */
      readonly request_id?: string | undefined;
    };
    readonly result: {
      /** the tasks that start when their dependencies are complete; none with dry_run */
      readonly accepted: readonly {
        readonly task_id: string;
        readonly role: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {});
        readonly phase: 'waiting_for_run' | 'waiting_for_person' | 'waiting_for_dependencies' | 'waiting_for_slot' | 'waiting_for_tracker' | 'preparing' | 'thinking' | 'acting' | 'awaiting_input' | 'awaiting_approval' | 'backing_off' | 'verifying' | 'closing' | 'cancelling' | (string & {});
      }[];
      /** with dry_run: the tasks that would start, in their order */
      readonly tasks?: readonly {
        readonly task_id: string;
        readonly role: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {});
        /** the model, or the assistant */
        readonly model: string;
        /** tasks that must be complete first, also those that the run skips */
        readonly after: readonly string[];
      }[] | undefined;
      /** the tasks that were not started, and why */
      readonly skipped: readonly {
        readonly task_id: string;
        readonly reason: string;
        /** the name of the reason */
        readonly code?: string | undefined;
      }[];
    };
  };
  /** the task as it is now */
  readonly status: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
    };
    readonly result: Task;
  };
  /** the roles, tools and limits of this server */
  readonly discovery: {
    readonly params: Readonly<Record<string, never>>;
    readonly result: {
      readonly [key: string]: unknown;
    };
  };
  /** creates a task */
  readonly create: {
    readonly params: {
      /** what to do */
      readonly description: string;
      /** one line; default: the first line of the description */
      readonly title?: string | undefined;
      /** tasks that must be complete first */
      readonly dependencies?: readonly string[] | undefined;
      /** 0 (first) to 4 (last) */
      readonly priority?: number | undefined;
      /** labels of the task */
      readonly labels?: readonly string[] | undefined;
      /** images for the agent, uploaded in the last hour */
      readonly attachments?: readonly {
        /** from the answer to POST /images */
        readonly digest: string;
        /** its file as people call it */
        readonly name?: string | undefined;
      }[] | undefined;
    };
    readonly result: Task;
  };
  /** makes tasks of the items of a plan; those that were made before stay as they are */
  readonly import: {
    readonly params: {
      /** what becomes tasks */
      readonly items: readonly {
        /** identifies it: one that was imported before is not made again */
        readonly ref: string;
        /** for people */
        readonly name: string;
        /** one line */
        readonly title: string;
        /** what to do */
        readonly description: string;
        /** 0 (first) to 4 (last) */
        readonly priority?: number | undefined;
        /** its labels */
        readonly labels?: readonly string[] | undefined;
        /** refs of other items, or ids of tasks */
        readonly depends_on?: readonly string[] | undefined;
      }[];
      /** make nothing; the answer says what would be made */
      readonly dry_run?: boolean | undefined;
    };
    readonly result: {
      /** where issues were read */
      readonly forge?: string | undefined;
      /** each after those that it depends on */
      readonly items: readonly {
        readonly title: string;
        /** the number of the issue, or the title */
        readonly name: string;
        /** what is done, or would be; deleted: a person deleted its task */
        readonly action: 'make' | 'change' | 'same' | 'deleted';
        readonly task_id?: string | undefined;
        /** names of items, and ids of tasks */
        readonly depends_on: readonly string[];
        /** cycles that its dependencies would close, which are left out: #3 -> #5 -> #3 */
        readonly cycles: readonly string[];
        /** what it depends on and is no task here */
        readonly unknown: readonly string[];
      }[];
      /** why no issue could be read */
      readonly problem?: {
        /** who mends it; limit and forge: it goes on by itself */
        readonly needs: 'person' | 'limit' | 'forge';
        /** limit, right, token, gone, moved, refused or away */
        readonly fault: string;
        /** what is wrong and what to do */
        readonly message: string;
      } | undefined;
    };
  };
  /** makes tasks of the open issues of the forge, and changes those that were edited there */
  readonly import_issues: {
    readonly params: {
      /** only issues with all of these labels */
      readonly labels?: readonly string[] | undefined;
      /** only issues of the milestone */
      readonly milestone?: string | undefined;
      /** make nothing; the answer says what would be made */
      readonly dry_run?: boolean | undefined;
    };
    readonly result: Methods['import']['result'];
  };
  /** the tasks, by pages */
  readonly list: {
    readonly params: {
      /** only tasks whose id begins or ends with this, on one page */
      readonly id?: string | undefined;
      /** only tasks with this status; queued means ready to run, active means started or waiting */
      readonly status?: 'queued' | 'started' | 'complete' | 'failed' | 'cancelled' | 'active' | (string & {}) | undefined;
      /** only tasks with this role */
      readonly role?: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {}) | undefined;
      /** only tasks with this label */
      readonly label?: string | undefined;
      /** by the time of creation; default: oldest first */
      readonly order?: 'oldest' | 'newest' | undefined;
      /** how many tasks to return */
      readonly limit?: number | undefined;
      /** next_cursor of the page before */
      readonly cursor?: string | undefined;
    };
    readonly result: {
      readonly tasks: readonly Task[];
      readonly next_cursor?: string | undefined;
      readonly total?: number | undefined;
      readonly note?: string | undefined;
    };
  };
  /** the journal of a task, oldest first, by pages */
  readonly history: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** only entries after this seq */
      readonly after_seq?: number | undefined;
      /** how many entries to return */
      readonly limit?: number | undefined;
      /** entries as they are kept, with their hashes, in place of frames */
      readonly kept?: boolean | undefined;
    };
    readonly result: {
      readonly entries: readonly {
        readonly [key: string]: unknown;
      }[];
      readonly next_after?: number | undefined;
      /** that its journal was removed because it was old; absent: it was not */
      readonly history_removed?: {
        /** the last entry that was removed */
        readonly through_seq: number;
        /** when */
        readonly at: string;
        /** store.retention_days at that time */
        readonly after_days: number;
      } | undefined;
    };
  };
  /** why a task is in its state, with the value of every guard */
  readonly explain: {
    readonly params: Methods['status']['params'];
    readonly result: Methods['discovery']['result'];
  };
  /** the changes of an attempt as a patch */
  readonly diff: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** number of the attempt; default: the latest */
      readonly attempt?: number | undefined;
      /** the names of all changed files without a patch, or the patch of these paths */
      readonly part?: {
        readonly names: true;
      } | {
        readonly paths: readonly string[];
      } | undefined;
    };
    readonly result: {
      readonly task_id: string;
      readonly attempt: number;
      readonly patch: string;
      readonly guarded: readonly string[];
      readonly files?: readonly {
        readonly path: string;
        readonly renamed_from?: string | undefined;
      }[] | undefined;
    };
  };
  /** merges the changes of an attempt into the project's branch; conflict: nothing was changed */
  readonly merge: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** number of the attempt; default: the latest */
      readonly attempt?: number | undefined;
      /** merge as one commit; false: by fast-forward; default: as merge.style says */
      readonly squash?: boolean | undefined;
      /** also an attempt that is not complete */
      readonly force?: boolean | undefined;
      /** false: it lands without a test; default: the commands that are known must pass */
      readonly verify?: boolean | undefined;
    };
    readonly result: {
      readonly task_id: string;
      readonly attempt: number;
      readonly status: 'merged' | 'nothing' | 'conflict';
      readonly commit?: string | undefined;
      /** the commands that passed on its tree */
      readonly tested?: readonly string[] | undefined;
      /** the command that did not pass */
      readonly failed?: {
        readonly command: string;
        readonly output: string;
      } | undefined;
      readonly merge_first?: {
        readonly task_id: string;
        readonly attempt: number;
        readonly complete: boolean;
      } | undefined;
      readonly moved_on?: true | undefined;
      readonly same_lines?: true | undefined;
      readonly rewritten?: true | undefined;
      readonly detached?: true | undefined;
      /** it was discarded, or has work that was: reopen it and run it again */
      readonly run_again?: true | undefined;
      /** its task was opened again after this was asked for */
      readonly reopened?: true | undefined;
      /** the branch fails by itself, or a command did not end */
      readonly unblamed?: true | undefined;
      /** tasks whose work is on the branch and was not when the attempt began */
      readonly with?: readonly string[] | undefined;
      readonly [key: string]: unknown;
    };
  };
  /** merges what can be merged, tested together, in the order of dependencies; names the rest */
  readonly merge_many: {
    readonly params: {
      /** merge as one commit; false: by fast-forward; default: as merge.style says */
      readonly squash?: boolean | undefined;
      /** also an attempt that is not complete */
      readonly force?: boolean | undefined;
      /** false: it lands without a test; default: the commands that are known must pass */
      readonly verify?: boolean | undefined;
      /** the tasks */
      readonly task_ids?: readonly string[] | undefined;
      /** all complete work that is not merged, beside task_ids */
      readonly all?: boolean | undefined;
      /** of the only one of task_ids; default: the latest */
      readonly attempt?: number | undefined;
      /** merge nothing: planned says in which order what would be tested */
      readonly dry_run?: boolean | undefined;
      /** answers after so long, with what is still tested as waiting; it goes on, also when who asked goes away; default: until all have ended */
      readonly wait_seconds?: number | undefined;
    };
    readonly result: {
      readonly landed: readonly {
        readonly task_id: string;
        readonly attempt: number;
        /** nothing: the branch had it, or there is none */
        readonly status: 'merged' | 'nothing';
        /** the commit of the branch that has it */
        readonly commit?: string | undefined;
        readonly into?: string | undefined;
        /** the commands that passed on the tree of the branch */
        readonly tested: readonly string[];
      }[];
      readonly refused: readonly {
        readonly task_id: string;
        readonly attempt?: number | undefined;
        /** verify_failed, merge_conflict, or that of an error */
        readonly code: string;
        readonly message: string;
        readonly with: readonly string[];
        readonly command?: string | undefined;
        readonly output?: string | undefined;
        readonly paths?: readonly string[] | undefined;
        /** another attempt goes on with it, which is merged then */
        readonly sent_back?: true | undefined;
        /** as merge answers */
        readonly conflict?: {
          readonly status: 'conflict';
          readonly branch: string;
          readonly why: string;
          readonly files: readonly string[];
          /** the command that did not pass */
          readonly failed?: {
            readonly command: string;
            readonly output: string;
          } | undefined;
          readonly merge_first?: {
            readonly task_id: string;
            readonly attempt: number;
            readonly complete: boolean;
          } | undefined;
          readonly moved_on?: true | undefined;
          readonly same_lines?: true | undefined;
          readonly rewritten?: true | undefined;
          readonly detached?: true | undefined;
          /** it was discarded, or has work that was: reopen it and run it again */
          readonly run_again?: true | undefined;
          /** its task was opened again after this was asked for */
          readonly reopened?: true | undefined;
          /** the branch fails by itself, or a command did not end */
          readonly unblamed?: true | undefined;
          /** tasks whose work is on the branch and was not when the attempt began */
          readonly with?: readonly string[] | undefined;
        } | undefined;
      }[];
      /** after wait_seconds: tasks whose merges go on; work.merge says what came of them */
      readonly waiting?: readonly string[] | undefined;
      /** of a dry run, in the order in which they would land */
      readonly planned?: readonly {
        readonly task_id: string;
        readonly attempt: number;
        /** they must pass; none: it would land untested */
        readonly commands: readonly string[];
        /** unmerged work of other tasks that it will conflict with, and the files */
        readonly conflicts_with?: readonly {
          readonly task_id: string;
          readonly paths: readonly string[];
        }[] | undefined;
      }[] | undefined;
    };
  };
  /** brings the project's branch into the work of a task; another attempt goes on with what conflicts or fails */
  readonly update: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** answers after so long, with what is still tested as waiting; it goes on, also when who asked goes away; default: until all have ended */
      readonly wait_seconds?: number | undefined;
    };
    readonly result: {
      readonly task_id: string;
      /** whose work it is; after sent_back the one that goes on with it */
      readonly attempt: number;
      /** current: it has all that the branch has; updated: it got what is new there; sent_back: another attempt goes on with it; refused: nothing was done; testing: it goes on after wait_seconds, and the log of the task says what came of it */
      readonly status: 'current' | 'updated' | 'sent_back' | 'refused' | 'testing';
      readonly commit?: string | undefined;
      /** the commands that passed */
      readonly tested?: readonly string[] | undefined;
      /** why it was sent back or refused */
      readonly message?: string | undefined;
      /** files that both sides changed */
      readonly paths?: readonly string[] | undefined;
    };
  };
  /** takes back what landed for a task, tested as what lands; the task is open again */
  readonly undo: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** landed work of tasks that depend on it is undone before it */
      readonly with_dependents?: boolean | undefined;
      /** answers after so long, with what is still tested as waiting; it goes on, also when who asked goes away; default: until all have ended */
      readonly wait_seconds?: number | undefined;
    };
    readonly result: Methods['merge_many']['result'];
  };
  /** pushes the work of a task, and opens its pull request or brings it up to date */
  readonly publish: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** unset: as forge.draft says */
      readonly draft?: boolean | undefined;
      /** the branch that it goes to; unset: that of the pull request, or the default branch */
      readonly base?: string | undefined;
      /** another attempt gets what checks and comments say, whatever the configuration says */
      readonly fix?: boolean | undefined;
    };
    readonly result: {
      readonly task_id: string;
      readonly attempt: number;
      readonly pull_request: {
        /** its number at the forge */
        readonly number?: number | undefined;
        /** its page */
        readonly url?: string | undefined;
        /** closed: a person closed it; abandoned: its task is over without it */
        readonly state: 'publishing' | 'open' | 'merging' | 'merged' | 'closed' | 'abandoned';
        /** of its head */
        readonly checks?: 'pending' | 'red' | 'green' | 'none' | undefined;
        /** what people with a say decided */
        readonly review?: 'none' | 'changes' | 'approved' | undefined;
        /** whether it fits its base; unknown: the forge has not worked it out */
        readonly mergeable?: 'yes' | 'behind' | 'conflicting' | 'unknown' | undefined;
        /** how many attempts the forge asked for */
        readonly round: number;
        /** its newest commit */
        readonly head_sha?: string | undefined;
        /** who or what is next */
        readonly waits_for?: 'checks' | 'review' | 'person' | 'forge' | 'limit' | undefined;
        /** what the forge refused: limit, right, token, gone, moved, refused or away */
        readonly fault?: string | undefined;
        /** why it is not merged yet */
        readonly reason?: string | undefined;
      };
    };
  };
  /** how the pull request of a task stands, and why it is not merged yet */
  readonly pull_request: {
    readonly params: Methods['explain']['params'];
    readonly result: Methods['publish']['result'];
  };
  /** how the sources of the configuration stand, whose issues become tasks */
  readonly sources: {
    readonly params: Readonly<Record<string, never>>;
    readonly result: {
      readonly sources: readonly {
        /** absent: that of the forge */
        readonly repository?: string | undefined;
        /** what its issues have */
        readonly labels: readonly string[];
        /** reading, parked (a limit), refused (a person mends it), away, or not followed */
        readonly state: string;
        /** open issues when it did something last */
        readonly issues?: number | undefined;
        /** when that was */
        readonly seen_at?: string | undefined;
        /** why it cannot be read */
        readonly problem?: string | undefined;
      }[];
    };
  };
  /** the work of an attempt is not offered, merged or built on any more; its branch stays */
  readonly discard: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** why; shown with the task */
      readonly reason?: string | undefined;
      /** number of the attempt; default: the latest */
      readonly attempt?: number | undefined;
    };
    readonly result: Task;
  };
  /** what people answered, allowed, denied, sent back or merged, the last one first */
  readonly decisions: {
    readonly params: {
      /** at most as many; default: 50 */
      readonly limit?: number | undefined;
    };
    readonly result: {
      readonly decisions: readonly {
        readonly seq: number;
        readonly task_id: string;
        readonly attempt: number;
        readonly at: string;
        readonly kind: 'answered' | 'allowed' | 'denied' | 'unanswered' | 'commented' | 'sent_back' | 'approved' | 'merged' | 'undone' | 'discarded' | 'retried' | 'reopened' | 'closed';
        /** the calls that were allowed or denied */
        readonly about?: string | undefined;
        /** the answer, the reason, the branch of a merge, or the number of comments */
        readonly said?: string | undefined;
      }[];
    };
  };
  /** what the attempts that are over used, per day (UTC) and role, in sum, and what was spent */
  readonly usage: {
    readonly params: {
      /** the first day, such as 2026-11-22; default: all */
      readonly since?: string | undefined;
    };
    readonly result: {
      readonly days: readonly {
        readonly attempts: number;
        readonly complete: number;
        readonly failed: number;
        readonly cancelled: number;
        readonly seconds: number;
        readonly model_calls: number;
        readonly tool_calls: number;
        readonly input_tokens: number;
        readonly output_tokens: number;
        readonly cached_tokens: number;
        readonly cache_write_tokens?: number | undefined;
        readonly cost_usd?: number | undefined;
        readonly day: string;
        readonly role: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {});
      }[];
      readonly total: {
        readonly attempts: number;
        readonly complete: number;
        readonly failed: number;
        readonly cancelled: number;
        readonly seconds: number;
        readonly model_calls: number;
        readonly tool_calls: number;
        readonly input_tokens: number;
        readonly output_tokens: number;
        readonly cached_tokens: number;
        readonly cache_write_tokens?: number | undefined;
        readonly cost_usd?: number | undefined;
      };
      /** by every call of a model today and this month (UTC), also of attempts not yet over */
      readonly spent: {
        readonly day_usd: number;
        readonly month_usd: number;
      };
    };
  };
  /** replays the journal through the statecharts and returns the states they reach */
  readonly replay: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** only up to this seq */
      readonly at_seq?: number | undefined;
    };
    readonly result: Methods['explain']['result'];
  };
  /** makes a task wait for another */
  readonly add_dependency: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** the task that must be complete first */
      readonly depends_on: string;
    };
    readonly result: Task;
  };
  /** removes a dependency */
  readonly remove_dependency: {
    readonly params: Methods['add_dependency']['params'];
    readonly result: Task;
  };
  /** changes title, description, priority or labels */
  readonly edit: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** one line */
      readonly title?: string | undefined;
      /** what to do */
      readonly description?: string | undefined;
      /** 0 (first) to 4 (last) */
      readonly priority?: number | undefined;
      /** replace the labels, but those that say how an attempt ended */
      readonly labels?: readonly string[] | undefined;
    };
    readonly result: Task;
  };
  /** deletes a task; answers with it as it was */
  readonly delete: {
    readonly params: Methods['pull_request']['params'];
    readonly result: Task;
  };
  /** marks a task complete */
  readonly close: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** why; shown with the task */
      readonly reason?: string | undefined;
    };
    readonly result: Task;
  };
  /** puts a complete task back into the queue */
  readonly reopen: {
    readonly params: Methods['close']['params'];
    readonly result: Task;
  };
  /** cancels a task and stops its agent */
  readonly cancel: {
    readonly params: Methods['reopen']['params'];
    readonly result: Task;
  };
  /** comments on the work of an attempt, sends it back or approves it */
  readonly review: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** the attempt whose work it is; default: the latest */
      readonly attempt?: number | undefined;
      /** request_changes starts the next attempt on the same branch */
      readonly verdict: 'comment' | 'request_changes' | 'approve';
      /** each is given to the next attempt once and answered in its results */
      readonly comments?: readonly {
        /** a file of the project; `.` is about all changes */
        readonly path: string;
        /** the line in the changed file, from 1 */
        readonly line?: number | undefined;
        /** the last line of a range */
        readonly end_line?: number | undefined;
        /** the comment */
        readonly text: string;
      }[] | undefined;
    };
    readonly result: Task;
  };
  /** runs a failed or cancelled task again */
  readonly retry: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** why; shown with the task */
      readonly reason?: string | undefined;
      /** another role; default: the role of the last attempt */
      readonly role?: 'engineer' | 'tester' | 'reviewer' | 'architect' | 'product-manager' | (string & {}) | undefined;
      /** other limits and settings */
      readonly options?: {
        /** the model to call */
        readonly model?: string | undefined;
        /** time limit of the attempt */
        readonly timeout_seconds?: number | undefined;
        /** turns of the attempt */
        readonly max_turns?: number | undefined;
        /** input and output tokens of the attempt */
        readonly max_tokens_total?: number | undefined;
        /** cost of the attempt in USD */
        readonly max_cost_usd?: number | undefined;
        /** commands that must pass before completion */
        readonly verify?: readonly string[] | undefined;
        /** now (default): refused while a dependency is not complete; ready: starts when all are complete */
        readonly when?: 'now' | 'ready' | undefined;
        /** commands may reach the network; needs sandbox.allow_task_network */
        readonly network?: boolean | undefined;
        /** a pull request is opened when it is complete; needs workspace.merge none */
        readonly publish?: boolean | undefined;
      } | undefined;
    };
    readonly result: Task;
  };
  /** starts a workflow; answers when the tasks of its first phase are made */
  readonly 'workflow.start': {
    readonly params: {
      /** the name of a workflow, such as feature */
      readonly kind: string;
      /** the feature, or the question */
      readonly name: string;
      /** the product; default: the project */
      readonly product?: string | undefined;
      /** default: medium */
      readonly thoroughness?: 'quick' | 'medium' | 'deep' | undefined;
      /** the optional steps that are done; absent: they are asked for */
      readonly steps?: readonly string[] | undefined;
      /** who decides about optional steps; default: a person */
      readonly decides?: 'person' | 'role' | undefined;
      /** commands that write the reports which gates read */
      readonly verify?: readonly string[] | undefined;
      /** the model to call */
      readonly model?: string | undefined;
    };
    readonly result: {
      /** its id; its tasks have the label workflow:<id> */
      readonly workflow_id: string;
      /** the name of its definition */
      readonly kind: string;
      /** the feature, or the question */
      readonly name: string;
      /** the number of its phase */
      readonly phase: number;
      /** stopped: by a recommendation */
      readonly status: 'started' | 'complete' | 'stopped' | 'failed' | 'cancelled';
      /** why its saved state cannot be restored, and what to do; else absent */
      readonly problem?: string | undefined;
    };
  };
  /** the workflows that are not over, then a page of the others, the last to end first */
  readonly 'workflow.list': {
    readonly params: {
      /** how many of those that are over; default: 100 */
      readonly limit?: number | undefined;
      /** next_cursor of the page before */
      readonly cursor?: string | undefined;
    };
    readonly result: {
      readonly workflows: readonly {
        /** its id; its tasks have the label workflow:<id> */
        readonly workflow_id: string;
        /** the name of its definition */
        readonly kind: string;
        /** the feature, or the question */
        readonly name: string;
        /** the number of its phase */
        readonly phase: number;
        /** stopped: by a recommendation */
        readonly status: 'started' | 'complete' | 'stopped' | 'failed' | 'cancelled';
        /** why its saved state cannot be restored, and what to do; else absent */
        readonly problem?: string | undefined;
      }[];
      readonly next_cursor?: string | undefined;
    };
  };
  /** a workflow with its phases, tasks and checks */
  readonly 'workflow.show': {
    readonly params: {
      /** the id of a workflow */
      readonly workflow_id: string;
    };
    readonly result: {
      /** its id; its tasks have the label workflow:<id> */
      readonly workflow_id: string;
      /** the name of its definition */
      readonly kind: string;
      /** the feature, or the question */
      readonly name: string;
      /** the number of its phase */
      readonly phase: number;
      /** stopped: by a recommendation */
      readonly status: 'started' | 'complete' | 'stopped' | 'failed' | 'cancelled';
      /** why its saved state cannot be restored, and what to do; else absent */
      readonly problem?: string | undefined;
      /** of its definition */
      readonly version: string;
      /** of its chart */
      readonly state: string;
      /** of its phase */
      readonly round: number;
      /** why it ended */
      readonly why?: string | undefined;
      /** the workflow that goes on with it, after a retry */
      readonly continued_as?: string | undefined;
      /** the project's file that narrowed it, and what it changed */
      readonly narrowed_by?: {
        readonly file: string;
        readonly changes: readonly string[];
      } | undefined;
      /** what it waits for now, for people */
      readonly waits_for: readonly string[];
      /** commands that run in the steps with verify */
      readonly verify: readonly string[];
      /** the reports that its gates look for */
      readonly reports: readonly {
        readonly phase: number;
        readonly check: string;
        /** the first that is there is read */
        readonly paths: readonly string[];
      }[];
      readonly started_at: string;
      readonly phases: readonly {
        readonly number: number;
        readonly name: string;
        readonly state: 'to_come' | 'active' | 'passed' | 'not_passed' | 'passed_over';
        readonly steps: readonly {
          readonly id: string;
          readonly by: string;
          /** its selection criterion */
          readonly when?: string | undefined;
          /** absent: nobody has decided */
          readonly selected?: boolean | undefined;
          readonly decided_by?: string | undefined;
          readonly reason?: string | undefined;
        }[];
        readonly tasks: readonly {
          readonly task_id: string;
          /** the step; ? and a step for the question about it */
          readonly step: string;
          readonly round: number;
          readonly status: string;
        }[];
        /** of its latest check */
        readonly findings: readonly {
          readonly gate: string;
          readonly check: string;
          readonly passed: boolean;
          /** what was looked for, where, and what was found */
          readonly says: string;
        }[];
      }[];
    };
  };
  /** goes on with the phase in which a workflow failed or was cancelled, as a new workflow */
  readonly 'workflow.retry': {
    readonly params: Methods['workflow.show']['params'];
    readonly result: Methods['workflow.start']['result'];
  };
  /** cancels a workflow and its tasks that are not over */
  readonly 'workflow.cancel': {
    readonly params: {
      /** the id of a workflow */
      readonly workflow_id: string;
      /** why; shown with the task */
      readonly reason?: string | undefined;
    };
    readonly result: Methods['workflow.show']['result'];
  };
  /** what people and clients asked for, oldest first, by pages; each line has the hash of the one before */
  readonly audit: {
    readonly params: {
      /** only lines from this time on, such as 2026-11-22T00:00:00Z */
      readonly since?: string | undefined;
      /** only lines about a task */
      readonly task_id?: string | undefined;
      /** only lines after this seq */
      readonly after_seq?: number | undefined;
      /** how many lines to return; default: 200 */
      readonly limit?: number | undefined;
    };
    readonly result: {
      readonly lines: readonly {
        /** 1, 2, 3, without a gap */
        readonly seq: number;
        readonly at: string;
        /** the name of the token; owner: the token of the server */
        readonly name: string;
        readonly via: 'cli' | 'page' | 'a2a' | 'mcp' | 'rpc';
        /** where the request came from; local: without a server */
        readonly address: string;
        /** a method, an operation or a route */
        readonly action: string;
        readonly task_id?: string | undefined;
        /** the token, the workflow, or the right that lacks */
        readonly about?: string | undefined;
        /** allowed: written no later than what came of it; done: names a task that came of it; forbidden, or the code of the error */
        readonly outcome: string;
        readonly id: string;
        /** the hash of the line before */
        readonly previous: string;
        /** SHA-256 of the line and of previous */
        readonly hash: string;
      }[];
      /** after_seq of the next page */
      readonly next_after?: number | undefined;
      /** the last line, kept apart from the lines */
      readonly end?: {
        readonly seq: number;
        readonly hash: string;
      } | undefined;
    };
  };
  /** makes a token for a person or a client; the only answer with it */
  readonly 'token.create': {
    readonly params: {
      /** who has it: 1 to 64 of a-z, 0-9 and . _ @ - */
      readonly name: string;
      /** read, run, review or admin; each has those before it; runner is for runners */
      readonly rights: 'read' | 'run' | 'review' | 'admin' | 'runner';
      /** how long it works; default: until it is revoked */
      readonly expires_seconds?: number | undefined;
    };
    readonly result: {
      readonly name: string;
      readonly rights: 'read' | 'run' | 'review' | 'admin' | 'runner';
      readonly created_at: string;
      /** absent: it works until it is revoked */
      readonly expires_at?: string | undefined;
      readonly token: string;
    };
  };
  /** the tokens, without what they are */
  readonly 'token.list': {
    readonly params: Readonly<Record<string, never>>;
    readonly result: {
      readonly tokens: readonly {
        readonly name: string;
        readonly rights: 'read' | 'run' | 'review' | 'admin' | 'runner';
        readonly created_at: string;
        /** absent: it works until it is revoked */
        readonly expires_at?: string | undefined;
      }[];
    };
  };
  /** ends a token, and the streams and logins that were made with it */
  readonly 'token.revoke': {
    readonly params: {
      /** the name of a token */
      readonly name: string;
    };
    readonly result: {
      readonly name: string;
    };
  };
  /** answers the question of an agent, or decides on calls that need approval */
  readonly respond: {
    readonly params: {
      /** the id of a task */
      readonly task_id: string;
      /** the attempt that asks */
      readonly attempt: number;
      /** awaiting.input_id of the task */
      readonly input_id: string;
      /** the answer in words */
      readonly text?: string | undefined;
      /** whether the calls may be made */
      readonly decision?: 'allow' | 'deny' | undefined;
    };
    readonly result: Task;
  };
}

/** The data of each type of frame; what has nothing to say is absent. */
export interface FrameData {
  /** a statechart took a transition; the whole task as it is now */
  readonly snapshot: {
      /** `task`, `agent` or `tracker` */
      readonly machine?: 'task' | 'agent' | 'tracker' | undefined;
      /** the state of the chart */
      readonly value?: unknown | undefined;
      /** the tags of the state */
      readonly tags?: readonly string[] | undefined;
      /** the task, as `status` answers it */
      readonly task?: Task | undefined;
    };
  /** status or phase changed */
  readonly status_update: {
      /** the status */
      readonly status?: Task['status'] | undefined;
      /** what it does or waits for */
      readonly phase?: Task['phase'] | undefined;
      /** from 0 to 1 */
      readonly progress?: number | undefined;
      /** why a request was refused or an attempt failed */
      readonly error?: Task['error'] | null | undefined;
      /** how long the task waited for its slot, when it gets it */
      readonly waited_seconds?: number | undefined;
    };
  /** a model call begins */
  readonly api_call_start: {
      /** number of the turn */
      readonly turn?: number | undefined;
      /** the model */
      readonly model?: string | undefined;
      /** `compact` when the call summarises the conversation */
      readonly purpose?: string | undefined;
      /** how many turns the attempt may take */
      readonly max_turns?: number | undefined;
    };
  /** a model call ended */
  readonly api_call_complete: {
      /** number of the turn */
      readonly turn?: number | undefined;
      /** the model */
      readonly model?: string | undefined;
      /** `compact` when the call summarises the conversation */
      readonly purpose?: string | undefined;
      /** how long it took */
      readonly duration_ms?: number | undefined;
      /** whether it succeeded */
      readonly ok?: boolean | undefined;
      /** why it failed */
      readonly error?: string | undefined;
      /** tokens that the model read */
      readonly input_tokens?: number | undefined;
      /** tokens that the model wrote */
      readonly output_tokens?: number | undefined;
      /** input tokens that the provider had cached */
      readonly cached_tokens?: number | undefined;
      /** input tokens that the provider wrote to its cache, where there were any */
      readonly cache_write_tokens?: number | undefined;
      /** cost in USD, where the price is known */
      readonly cost_usd?: number | undefined;
      /** the run whose budget it counts for */
      readonly run?: string | undefined;
    };
  /** text of the model or of the assistant */
  readonly text_delta: {
      /** the next piece */
      readonly text?: string | undefined;
    };
  /** a tool call begins */
  readonly tool_start: {
      /** id of the call */
      readonly call_id?: string | undefined;
      /** name of the tool */
      readonly tool?: string | undefined;
      /** the arguments as JSON text, shortened */
      readonly arguments?: string | undefined;
    };
  /** a command writes */
  readonly tool_output: {
      /** id of the call */
      readonly call_id?: string | undefined;
      /** name of the tool */
      readonly tool?: string | undefined;
      /** what it wrote */
      readonly chunk?: string | undefined;
    };
  /** a tool call ended */
  readonly tool_end: {
      /** id of the call */
      readonly call_id?: string | undefined;
      /** name of the tool */
      readonly tool?: string | undefined;
      /** whether it succeeded */
      readonly ok?: boolean | undefined;
      /** how long it took */
      readonly duration_ms?: number | undefined;
      /** the result, shortened */
      readonly output?: string | undefined;
    };
  /** the agent asks a person */
  readonly input_required: {
      /** send it with `respond` */
      readonly input_id?: string | undefined;
      /** `input` or `approval` */
      readonly kind?: 'input' | 'approval' | undefined;
      /** the question, or what the calls are for */
      readonly question?: string | undefined;
      /** the calls that need approval: `call_id`, `tool`, `arguments` */
      readonly calls?: readonly { readonly call_id: string; readonly tool: string; readonly arguments: unknown }[] | undefined;
      /** when it is too late to answer */
      readonly deadline?: string | null | undefined;
      /** the answer that counts when nobody answers */
      readonly default_answer?: string | null | undefined;
      /** `true` when it is asked again after a restart of the server */
      readonly again?: boolean | undefined;
    };
  /** the agent wants to make calls that need approval */
  readonly approval_required: {
      /** send it with `respond` */
      readonly input_id?: string | undefined;
      /** `input` or `approval` */
      readonly kind?: 'input' | 'approval' | undefined;
      /** the question, or what the calls are for */
      readonly question?: string | undefined;
      /** the calls that need approval: `call_id`, `tool`, `arguments` */
      readonly calls?: readonly { readonly call_id: string; readonly tool: string; readonly arguments: unknown }[] | undefined;
      /** when it is too late to answer */
      readonly deadline?: string | null | undefined;
      /** the answer that counts when nobody answers */
      readonly default_answer?: string | null | undefined;
      /** `true` when it is asked again after a restart of the server */
      readonly again?: boolean | undefined;
    };
  /** tokens that were spent */
  readonly usage: {
      /** number of the turn */
      readonly turn?: number | undefined;
      /** the assistant, where one works */
      readonly assistant?: string | undefined;
      /** model calls of the assistant */
      readonly model_calls?: number | undefined;
      /** tokens that the model read */
      readonly input_tokens?: number | undefined;
      /** tokens that the model wrote */
      readonly output_tokens?: number | undefined;
      /** input tokens that the provider had cached */
      readonly cached_tokens?: number | undefined;
      /** input tokens that the provider wrote to its cache, where there were any */
      readonly cache_write_tokens?: number | undefined;
      /** cost in USD, where the price is known */
      readonly cost_usd?: number | undefined;
      /** the run whose budget it counts for */
      readonly run?: string | undefined;
    };
  /** a remark of the server about the attempt */
  readonly log: {
      /** `info`, `warn` or `error` */
      readonly level?: 'info' | 'warn' | 'error' | undefined;
      /** the remark */
      readonly message?: string | undefined;
      /** of a person: `kind`, `about` (the calls), `said` */
      readonly decision?: Readonly<Record<string, unknown>> | undefined;
      /** of a verify command */
      readonly exit_code?: number | undefined;
      /** number of the attempt */
      readonly attempt?: number | undefined;
      /** the branch with the work */
      readonly branch?: string | undefined;
      /** the commit that the work started from */
      readonly base?: string | undefined;
      /** the last commit of the work */
      readonly commit?: string | undefined;
      /** how many files changed */
      readonly files?: number | undefined;
      /** lines added */
      readonly insertions?: number | undefined;
      /** lines removed */
      readonly deletions?: number | undefined;
      /** the commit of your branch that has the work */
      readonly merge_commit?: string | undefined;
    };
  /** the task is complete */
  readonly completed: {
      /** number of the attempt */
      readonly attempt?: number | undefined;
      /** turns, calls and tokens of the attempt */
      readonly usage?: Task['usage'] | undefined;
      /** the role that worked on it */
      readonly role?: Task['role'] | undefined;
      /** time from the start to the end */
      readonly execution_seconds?: number | undefined;
      /** the results file, inside the project */
      readonly results_path?: string | undefined;
      /** always 1 */
      readonly progress?: number | undefined;
      /** the summary of the agent */
      readonly result?: string | undefined;
    };
  /** the attempt failed */
  readonly failed: {
      /** number of the attempt */
      readonly attempt?: number | undefined;
      /** turns, calls and tokens of the attempt */
      readonly usage?: Task['usage'] | undefined;
      /** the role that worked on it */
      readonly role?: Task['role'] | undefined;
      /** time from the start to the end */
      readonly execution_seconds?: number | undefined;
      /** the results file, inside the project */
      readonly results_path?: string | undefined;
      /** name, message and facts of the failure */
      readonly error?: Task['error'] | null | undefined;
    };
  /** the task was cancelled */
  readonly cancelled: {
      /** number of the attempt */
      readonly attempt?: number | undefined;
      /** turns, calls and tokens of the attempt */
      readonly usage?: Task['usage'] | undefined;
      /** the role that worked on it */
      readonly role?: Task['role'] | undefined;
      /** time from the start to the end */
      readonly execution_seconds?: number | undefined;
      /** the results file, inside the project */
      readonly results_path?: string | undefined;
      /** why, or null */
      readonly reason?: string | null | undefined;
    };
  /** the last frame of an attempt */
  readonly stream_closed: {
      /** the task */
      readonly task_id?: string | undefined;
      /** why the stream ends */
      readonly message?: string | undefined;
    };
  /** somebody else changed the task in `.beads/issues.jsonl`, and the server took it over */
  readonly tracker_imported: {
      /** `added`, `changed` or `removed` */
      readonly change?: 'added' | 'changed' | 'removed' | undefined;
      /** the keys of the line whose values changed */
      readonly fields?: readonly string[] | undefined;
    };
  /** a workflow made a transition; `task_id` is the id of the workflow */
  readonly workflow: {
      /** its id */
      readonly workflow_id?: string | undefined;
      /** the name of its definition */
      readonly kind?: string | undefined;
      /** the feature, or the question */
      readonly name?: string | undefined;
      /** the number of its phase */
      readonly phase?: number | undefined;
      /** `started`, `complete`, `stopped`, `failed` or `cancelled` */
      readonly status?: 'started' | 'complete' | 'stopped' | 'failed' | 'cancelled' | undefined;
      /** `workflow` */
      readonly machine?: 'workflow' | undefined;
      /** the state of its chart */
      readonly value?: unknown | undefined;
      /** the round of its phase, from 1 */
      readonly round?: number | undefined;
      /** why a person gave it up, since its saved state cannot be restored */
      readonly why?: string | undefined;
    };
  /** a merge queue made a transition; `task_id` is the id of the queue */
  readonly mergeQueue: {
      /** the tasks whose work waits */
      readonly waiting?: readonly string[] | undefined;
      /** those that are built, tested and landed together */
      readonly batch?: readonly string[] | undefined;
      /** those of the batch that merge cleanly, in their order */
      readonly cars?: readonly string[] | undefined;
      /** `mergeQueue` */
      readonly machine?: 'mergeQueue' | undefined;
      /** the state of its chart */
      readonly value?: unknown | undefined;
    };
  /** the pull request of a task made a transition; `task_id` is that of the task, with `/pr` */
  readonly pullRequest: {
      /** the id of the task */
      readonly task?: string | undefined;
      /** as in the view of the task */
      readonly pull_request?: Task['pull_request'] | undefined;
      /** `pullRequest` */
      readonly machine?: 'pullRequest' | undefined;
      /** the state of its chart */
      readonly value?: unknown | undefined;
    };
  /** a source of tasks made a transition; `task_id` is the id of the source */
  readonly source: {
      /** its repository; null: that of the forge */
      readonly repository?: string | null | undefined;
      /** what its issues have */
      readonly labels?: readonly string[] | undefined;
      /** what the last look did: `issues, made, changed, ended`, its time and its place in the journal */
      readonly seen?: Readonly<Record<string, unknown>> | null | undefined;
      /** why it cannot be read; null: it can */
      readonly problem?: Readonly<Record<string, unknown>> | null | undefined;
      /** `source` */
      readonly machine?: 'source' | undefined;
      /** the state of its chart */
      readonly value?: unknown | undefined;
    };
  /** something in the sandbox asked the proxy for a host, for the first time in the attempt */
  readonly network: {
      /** the host */
      readonly host?: string | undefined;
      /** its port */
      readonly port?: number | undefined;
      /** whether it was let through */
      readonly allowed?: boolean | undefined;
    };
  /** the first frame of a stream */
  readonly connected: {
      /** the task */
      readonly task_id?: string | undefined;
      /** what you are connected to */
      readonly message?: string | undefined;
    };
  /** you are too far behind, or ask for entries that were removed, and are disconnected */
  readonly gap: {
      /** send it as `Last-Event-ID` */
      readonly resume_from?: number | undefined;
      /** what to do */
      readonly message?: string | undefined;
    };
}

export type FrameType = keyof FrameData;

/**
 * What happens to a task, by its `type`. A newer server may send other types: leave a `switch` open
 * for them.
 */
export type Frame = {
  readonly [Type in FrameType]: {
    readonly type: Type;
    readonly task_id: string;
    /** 0 before the first */
    readonly attempt: number;
    /** null for frames that are not in the journal */
    readonly seq: number | null;
    readonly timestamp: string;
    readonly data: FrameData[Type];
  };
}[FrameType];
