"""Makes a recurring run of a compiled pipeline on Kubeflow Pipelines; an earlier one of the same name is replaced.

    crowdzoo run pets.yaml --on kubeflow --out pets-kubeflow.yaml
    python recurring_run.py pets-kubeflow.yaml --name pets --host https://kubeflow.example.com/pipeline

Needs kfp, which the extra `pipeline` brings.
"""

import argparse
import json

import kfp

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("package", help="file of `crowdzoo run --on kubeflow`")
parser.add_argument("--name", required=True, help="of the recurring run and of its experiment")
parser.add_argument("--host", help="address of Kubeflow Pipelines (default: that of the cluster this runs in)")
parser.add_argument("--cron", default="0 30 3 * * *", help="six fields, seconds first (default: every night at 03:30)")
parser.add_argument("--parameters", type=json.loads, default={}, help="JSON, such as '{\"training_epochs\": 30}'")
parser.add_argument("--service-account", help="of the pods (default: Kubeflow's)")
arguments = parser.parse_args()

client = kfp.Client(host=arguments.host)
experiment = client.create_experiment(arguments.name).experiment_id
earlier = client.list_recurring_runs(experiment_id=experiment, page_size=100).recurring_runs or []
run = client.create_recurring_run(
    experiment_id=experiment,
    job_name=arguments.name,
    cron_expression=arguments.cron,
    max_concurrency=1,  # a run that still goes on delays the next one: two must not push into one folder
    no_catchup=True,  # after a pause only the latest run is made up for
    pipeline_package_path=arguments.package,
    params=arguments.parameters,
    service_account=arguments.service_account,
)
for each in earlier:
    if each.display_name == arguments.name:
        client.delete_recurring_run(each.recurring_run_id)
print(f"{arguments.name}: recurring run {run.recurring_run_id}, {arguments.cron}")
