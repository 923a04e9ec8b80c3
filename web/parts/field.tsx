import type { Signal } from '@preact/signals';
import type { ComponentChildren, Ref, TargetedInputEvent, TargetedKeyboardEvent } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** A field with its name above it. */
const Labelled = ({ name, children }: { name: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noLabelWithoutControl: its child is the control
  <label>
    <span>{name}</span>
    {children}
  </label>
);

interface TextProps {
  readonly name: string;
  readonly value: Signal<string>;
  /** Of a field for many lines. */
  readonly rows?: number;
  readonly maxLength?: number;
  /** The id of a list of suggestions. */
  readonly list?: string;
  /** It has the focus at once. */
  readonly isFocused?: boolean;
}

export const TextField = ({ name, value, rows, isFocused, ...rest }: TextProps) => {
  const field = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (isFocused === true) field.current?.focus();
  }, [isFocused]);
  const given = {
    ...rest,
    value: value.value,
    onInput: ({ currentTarget }: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) => {
      value.value = currentTarget.value;
    },
    onKeyDown: ({
      key,
      ctrlKey,
      metaKey,
      currentTarget,
    }: TargetedKeyboardEvent<HTMLInputElement | HTMLTextAreaElement>) => {
      if (key === 'Enter' && (ctrlKey || metaKey))
        currentTarget.form?.querySelector<HTMLElement>('.primary')?.click();
    },
  };
  return (
    <Labelled name={name}>
      {rows === undefined ? (
        <input type="text" ref={field as Ref<HTMLInputElement>} {...given} />
      ) : (
        <textarea rows={rows} ref={field as Ref<HTMLTextAreaElement>} {...given} />
      )}
    </Labelled>
  );
};

interface ChoiceProps {
  readonly name: string;
  readonly value: Signal<string>;
  readonly choices: readonly (readonly [value: string, name: string])[];
}

export const ChoiceField = ({ name, value, choices }: ChoiceProps) => (
  <Labelled name={name}>
    <select
      value={value.value}
      onChange={({ currentTarget }) => {
        value.value = currentTarget.value;
      }}
    >
      {choices.map(([each, words]) => (
        <option key={each} value={each}>
          {words}
        </option>
      ))}
    </select>
  </Labelled>
);

export const PriorityField = ({ value }: Pick<ChoiceProps, 'value'>) => (
  <ChoiceField
    name="Priority"
    value={value}
    choices={['0, first', '1', '2', '3', '4, last'].map((words, at) => [`${at}`, words])}
  />
);
