/** The end of a line of a drawing, in the colour of the line. */
export const ArrowHead = ({ id }: { id: string }) => (
  <defs>
    <marker
      id={id}
      viewBox="0 0 8 8"
      refX="7"
      refY="4"
      markerWidth="6"
      markerHeight="6"
      orient="auto"
    >
      <path d="M0,0.800L8,4L0,7.200z" fill="context-stroke" />
    </marker>
  </defs>
);
