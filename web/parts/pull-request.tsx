import { useSignal } from '@preact/signals';
import { publish } from '../data/actions.ts';
import { repository } from '../data/session.ts';
import type { PullRequest, TaskView } from '../data/tasks.ts';
import { isToReview, pullRequestOf } from '../model/state.ts';
import { Button } from './button.tsx';
import { Icon } from './icon.tsx';

/** The forge says the address: it is a link only where it leads to a page. */
const isPage = (url: string): boolean =>
  URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);

/** `#12`, which opens its page at the forge. */
export const PullRequestLink = ({
  pullRequest: { number, url = '' },
  kind,
}: {
  pullRequest: PullRequest;
  kind?: 'button';
}) => {
  if (number === undefined) return null;
  const name = kind === undefined ? `#${number}` : `Open #${number}`;
  return isPage(url) ? (
    <a class={kind} href={url} target="_blank" rel="noopener noreferrer">
      {name}
    </a>
  ) : (
    <span>{name}</span>
  );
};

/** `Pull request #12 open, checks red, review none` */
export const PullRequestLine = ({ task: { pull_request: found } }: { task: TaskView }) =>
  found === undefined ? null : (
    <p class="quiet small">
      Pull request <PullRequestLink pullRequest={found} />{' '}
      {[
        found.state,
        found.checks && `checks ${found.checks}`,
        found.review && `review ${found.review}`,
        found.reason,
      ]
        .filter(Boolean)
        .join(', ')}
    </p>
  );

interface PublishProps {
  readonly task: TaskView;
  readonly fail: (message: string) => void;
  readonly mayDraft?: boolean;
}

/** For work that can be merged here, or whose pull request was refused; not where there is no forge. */
export const PublishButton = ({ task, fail, mayDraft = false }: PublishProps) => {
  const isDraft = useSignal(false);
  const found = pullRequestOf(task);
  const refused = found?.state === 'publishing' && found.waits_for === 'person';
  if (repository.value === null || !(refused || isToReview(task))) return null;
  return (
    <span class="run">
      {mayDraft && (
        <label class="small">
          <input
            type="checkbox"
            checked={isDraft.value}
            onChange={({ currentTarget }) => {
              isDraft.value = currentTarget.checked;
            }}
          />{' '}
          Draft
        </label>
      )}
      <Button
        hotkey="p"
        hint={`Opens a pull request at ${repository.value}`}
        onPress={() => publish(task, isDraft.value)}
        onError={fail}
      >
        <Icon name="pull" />
        {refused ? 'Publish again' : 'Publish'}
      </Button>
    </span>
  );
};
