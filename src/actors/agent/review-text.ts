import {
  type CommentAnswer,
  commentPlace,
  type ReviewComment,
  type ReviewedWork,
} from '../../machines/review.ts';

const commentBody = (text: string): string => text.trim().replaceAll('\n', '\n   ');

/** The comments, for the first message of the attempt that answers them. */
export const reviewText = ({ continues, comments }: ReviewedWork): string => {
  if (comments.length === 0) return 'A person read your work and asks you to go on with it.\n';
  const where = continues === null ? '' : `, attempt ${continues}, which is in your folder`;
  const list = comments.map(
    (comment) => `${comment.id}. ${commentPlace(comment)}\n   ${commentBody(comment.text)}`,
  );
  return [
    '# Review',
    '',
    `A person read the earlier work${where}. Do what each comment asks, or say why not. Answer each one by its number: in \`answers\` of finish or, where you have no finish, with a line \`Comment ${comments[0]?.id}: …\` in your last message.`,
    '',
    ...list,
    '',
  ].join('\n');
};

const longestAnswer = 4_000;
const answerLine = /^[\s>*_#-]*comment\s+#?(\d+)[*_]*\s*[:.–-]+[*_]*\s*(.*)/i;

/** The answers in the last message of an assistant, each up to the line of the next one. */
export const answersIn = (
  text: string,
  comments: readonly ReviewComment[],
): readonly CommentAnswer[] => {
  const answers: { comment: number; answer: string }[] = [];
  for (const line of text.split('\n')) {
    const [, number, begin = ''] = answerLine.exec(line) ?? [];
    const last = answers.at(-1);
    if (number !== undefined) answers.push({ comment: Number(number), answer: begin });
    else if (last !== undefined) last.answer = `${last.answer}\n${line}`;
  }
  const known = new Set(comments.map(({ id }) => id));
  return answers
    .map(({ comment, answer }) => ({ comment, answer: answer.trim().slice(0, longestAnswer) }))
    .filter(({ comment, answer }) => known.has(comment) && answer !== '');
};
