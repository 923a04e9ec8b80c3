import { useSignal } from '@preact/signals';
import { answer, decide } from '../../data/actions.ts';
import type { TaskView } from '../../data/tasks.ts';
import { callText } from '../../model/state.ts';
import { Button } from '../../parts/button.tsx';
import { LongText } from '../../parts/long-text.tsx';
import { Prose } from '../../parts/prose.tsx';

export interface AskedProps {
  readonly task: TaskView;
  readonly fail: (message: string) => void;
}

const ownChoice = 'Decide for yourself, and say in the results what you chose.';

export const Question = ({ task, fail }: AskedProps) => {
  const text = useSignal('');
  const send = async (): Promise<void> => {
    if (text.value.trim() === '') throw new Error('Write the answer first.');
    await answer(task, text.value);
  };
  return (
    <>
      <Prose kind="asked" text={task.awaiting?.question ?? ''} />
      <div class="actions">
        <textarea
          rows={1}
          aria-label={`Your answer to ${task.title}`}
          placeholder="Your answer"
          value={text.value}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
          }}
          onKeyDown={({ key, ctrlKey, metaKey }) => {
            if (key === 'Enter' && (ctrlKey || metaKey))
              void send().catch((error: Error) => fail(error.message));
          }}
        />
        <Button hint="The agent goes on with your answer" onPress={send} onError={fail}>
          Answer
        </Button>
        <Button
          kind="quiet"
          hint={`Answers: ${ownChoice}`}
          onPress={() => answer(task, ownChoice)}
          onError={fail}
        >
          Let the agent decide
        </Button>
      </div>
    </>
  );
};

export const Approval = ({ task, fail }: AskedProps) => {
  const reason = useSignal('');
  const calls = task.awaiting?.calls ?? [];
  return (
    <>
      {calls.map(({ call_id, tool, arguments: given }) => (
        <pre key={call_id} class="box">
          <span class="quiet">{tool} </span>
          <LongText text={callText(given)} />
        </pre>
      ))}
      {calls.length === 0 && <Prose kind="asked" text={task.awaiting?.question ?? ''} />}
      <div class="actions">
        <Button
          kind="primary"
          hotkey="a"
          hint="These calls run, once"
          onPress={() => decide(task, 'allow', reason.value)}
          onError={fail}
        >
          Allow
        </Button>
        <Button
          hotkey="d"
          hint="They do not run; the agent reads why"
          onPress={() => decide(task, 'deny', reason.value)}
          onError={fail}
        >
          Deny
        </Button>
        <input
          type="text"
          aria-label={`Reason, for ${task.title}`}
          placeholder="Reason, sent to the agent when you deny"
          value={reason.value}
          onInput={({ currentTarget }) => {
            reason.value = currentTarget.value;
          }}
        />
      </div>
    </>
  );
};
