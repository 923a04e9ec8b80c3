import type { AnyActorRef, EventObject } from 'xstate';

/** A caller's request, carried by its event. */
export interface EventRequest {
  /** The store maps it to the task, so that it is carried out once. */
  readonly id: string | null;
  /** Called at the turn of the event. True: it is refused, and the caller has heard. */
  refused(snapshot: unknown): boolean;
  /** Called when the transition of the event is shown. */
  published(): void;
}

const requests = new WeakMap<EventObject, EventRequest>();

export const takeRequest = (event: EventObject): EventRequest | undefined => {
  const request = requests.get(event);
  requests.delete(event);
  return request;
};

export interface SendOptions<Snapshot, Answer> {
  readonly requestId: string | null;
  /** @throws the refusal of the event; called at its turn */
  readonly requireAllowed: (snapshot: Snapshot) => void;
  /** Read when the transition of the event is shown. */
  readonly answer: () => Answer;
}

/** The actor ended before the turn of the event. */
export class ActorEndedError extends Error {
  override readonly name = 'ActorEndedError';
}

/**
 * Sends an event to a durable actor. Resolves when the transition of this event is committed and
 * shown. Rejects when it is refused, or when the actor ends first: then nothing of it happened, or
 * the store knows.
 */
export const sendRequest = <Snapshot, Answer>(
  actor: AnyActorRef,
  event: EventObject,
  { requestId, requireAllowed, answer }: SendOptions<Snapshot, Answer>,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    if (actor.getSnapshot().status !== 'active')
      return reject(new ActorEndedError('the actor has ended'));
    const settle = (end: () => void): void => {
      subscription.unsubscribe();
      end();
    };
    const subscription = actor.subscribe({
      error: (error) => settle(() => reject(error)),
      complete: () => settle(() => reject(new ActorEndedError('the actor was stopped'))),
    });
    requests.set(event, {
      id: requestId,
      refused: (snapshot) => {
        try {
          requireAllowed(snapshot as Snapshot);
          return false;
        } catch (error) {
          settle(() => reject(error));
          return true;
        }
      },
      published: () => settle(() => resolve(answer())),
    });
    actor.send(event);
  });
