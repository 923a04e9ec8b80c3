import { workflows } from '../../data/workflows.ts';
import { workflowPath } from '../../shell/router.ts';

const rowsAtMost = 20;

/** Those that are not over, and the newest others; nothing where there are none. */
export const WorkflowTable = () =>
  workflows.value.length === 0 ? null : (
    <>
      <h2>Workflows</h2>
      <table>
        <thead>
          <tr>
            <th>Workflow</th>
            <th>Kind</th>
            <th>Phase</th>
            <th>Status</th>
          </tr>
        </thead>
        <tbody>
          {workflows.value.slice(0, rowsAtMost).map((each) => (
            <tr key={each.workflow_id}>
              <td>
                <a href={workflowPath(each.workflow_id)}>{each.name}</a>{' '}
                <span class="id">{each.workflow_id}</span>
              </td>
              <td>{each.kind}</td>
              <td>{each.phase}</td>
              <td>{each.status}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
