import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { messageOf } from '../../src/machines/message-of.ts';
import { request } from '../data/call.ts';
import type { ImagesProps } from '../data/later-parts.ts';
import type { TaskView } from '../data/tasks.ts';
import { Button } from './button.tsx';

/** Drawn, since an address of our server needs the token, and the policy of the page allows no other. */
const Picture = ({ name, read }: { name: string; read: () => Promise<Blob> }) => {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isWhole = useSignal(false);
  useEffect(() => {
    const draw = async (): Promise<void> => {
      const bitmap = await createImageBitmap(await read());
      const { current } = canvas;
      if (current === null) return;
      current.width = bitmap.width;
      current.height = bitmap.height;
      current.getContext('2d')?.drawImage(bitmap, 0, 0);
    };
    // Its name is shown in its place.
    draw().catch(() => {});
  }, []);
  return (
    <button
      type="button"
      class="link"
      style={{ display: 'grid', maxWidth: '100%' }}
      title={name}
      onClick={() => {
        isWhole.value = !isWhole.value;
      }}
    >
      <canvas
        ref={canvas}
        width="0"
        height="0"
        role="img"
        aria-label={name}
        style={{ maxWidth: '100%', maxHeight: isWhole.value ? 'none' : '120px' }}
      />
      {name}
    </button>
  );
};

/** Those of a task. */
const Attached = ({ task: { task_id, attachments = [] } }: { task: TaskView }) => (
  <div class="actions">
    {attachments.map(({ digest, name }) => (
      <Picture
        key={digest}
        name={name || 'Image'}
        read={async () => (await request(`images/${task_id}/${digest}`)).blob()}
      />
    ))}
  </div>
);

type AttachProps = Required<Pick<ImagesProps, 'images' | 'fail'>>;

/** What was uploaded from this tab, by its digest. */
const files = new Map<string, Blob>();

/** By a button, and by what is pasted into its form or dropped on it. */
const Attach = ({ images, fail }: AttachProps) => {
  const place = useRef<HTMLDivElement>(null);
  const add = async (given: Iterable<File>): Promise<void> => {
    fail('');
    for (const file of given)
      try {
        const headers = { 'content-type': file.type };
        const response = await request('images', { method: 'POST', headers, body: file });
        const { digest, error } = await response.json();
        if (!response.ok) throw new Error(`${file.name}: ${error.message}`);
        const others = images.value.filter((each) => each.digest !== digest);
        files.set(digest, file);
        images.value = [...others, { digest, name: file.name }];
      } catch (error) {
        fail(messageOf(error));
      }
  };
  useEffect(() => {
    const form = place.current?.closest('form');
    const take = (event: Event, given: DataTransfer | null): void => {
      if (!given?.types.includes('Files')) return;
      event.preventDefault();
      void add([...given.files]);
    };
    form?.addEventListener('paste', (event) => take(event, event.clipboardData));
    form?.addEventListener('dragover', (event) => take(event, event.dataTransfer));
    form?.addEventListener('drop', (event) => take(event, event.dataTransfer));
  }, []);
  return (
    <div ref={place}>
      <label>
        <span>Images: choose, paste or drop them</span>
        <input
          type="file"
          multiple
          accept="image/png,image/jpeg,image/webp"
          onChange={({ currentTarget }) => {
            void add([...(currentTarget.files ?? [])]);
            currentTarget.value = '';
          }}
        />
      </label>
      <div class="actions" style={{ marginTop: '8px' }}>
        {images.value.map(({ digest, name }) => (
          <span key={digest}>
            <Picture name={name} read={async () => files.get(digest) ?? new Blob()} />
            <Button
              kind="quiet"
              label={`Remove ${name}`}
              onPress={() => {
                images.value = images.value.filter((each) => each.digest !== digest);
              }}
            >
              Remove
            </Button>
          </span>
        ))}
      </div>
    </div>
  );
};

export const Images = ({ task, images, fail }: ImagesProps) => (
  <>
    {task && <Attached task={task} />}
    {images && fail && <Attach images={images} fail={fail} />}
  </>
);
