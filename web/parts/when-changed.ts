import { Component, type VNode } from 'preact';

/**
 * A part that is drawn again when one of its values is another one. A VNode that is kept and drawn
 * again would hold the whole tree it was drawn in, with all that was shown then.
 */
export const whenChanged = <Values extends object>(draw: (values: Values) => VNode | null) =>
  class extends Component<Values> {
    override shouldComponentUpdate(next: Values): boolean {
      const before: Values = this.props;
      return (Object.keys(next) as (keyof Values)[]).some((name) => next[name] !== before[name]);
    }
    override render(): VNode | null {
      return draw(this.props);
    }
  };
