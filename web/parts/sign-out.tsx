import { signOut } from '../data/session.ts';

export const SignOut = () => (
  <button type="button" class="link quiet small sign-out" onClick={() => void signOut()}>
    Sign out
  </button>
);
