import { useSignal } from '@preact/signals';
import { Button } from '../../parts/button.tsx';
import { Icon, Mark } from '../../parts/icon.tsx';

export const Login = ({ message }: { message: string | null }) => {
  const copied = useSignal(false);
  return (
    <main class="login">
      <p class="login-name">
        <Mark /> Agent Task Server
      </p>
      <h1>Open this page from your terminal</h1>
      <p class="quiet">
        There is no password. The command below opens this page, signed in, with a code that works
        once and for 60 seconds. Run it in the folder of your project.
      </p>
      <div class="command">
        <code>
          <span class="quiet">$ </span>agent open
        </code>
        <Button
          onPress={async () => {
            await navigator.clipboard.writeText('agent open');
            copied.value = true;
          }}
        >
          {copied.value ? 'Copied' : 'Copy'}
        </Button>
      </div>
      <p class="quiet small">
        <code>agent open bd-a1b2</code> opens one task. Without a desktop:{' '}
        <code>agent open --print</code>
      </p>
      {message !== null && (
        <p class="line tint-need tone-need" role="alert">
          <Icon name="clock" />
          <span>{message}</span>
        </p>
      )}
    </main>
  );
};
