import { CreateForm } from './create-form.tsx';

export const CreateView = () => (
  <div class="first">
    <h1>New task</h1>
    <CreateForm isFocused />
  </div>
);
