"""The tasks on which previews are calibrated and judged: tables of public repositories, fixed before any run.

A task is a table, its label and its groups. No table among those that calibrate is among those that judge. Tables are
read from folders that `TILTMETER_TABLES` names; nothing of them is kept here. `rdatasets` is the `csv` folder of
vincentarelbundock/Rdatasets, `fairness` is `experiments/data` of tailequy/fairness_dataset, `adult` the publishers'.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import tiltmeter as tm

#: Rows of a table that are used, at most, drawn by seed 0; and the share that judges.
MOST_ROWS, HELD_OUT = 12_000, 0.3


@dataclass(frozen=True)
class Task:
    """A table with its label, the label that is a yes, its groups, and columns that would give the label away."""

    name: str
    file: str
    label: str
    positive: str
    group: str
    drop: tuple[str, ...] = ()


def _task(name: str, file: str, label: str, positive: str, group: str, drop: str = "") -> Task:
    return Task(name, file, label, positive, group, tuple(drop.split()))


CREDIT, COMPAS = "default payment", "id name first last compas_screening_date dob c_jail_in c_jail_out c_case_number"
COMPAS_DROP = (
    f"{COMPAS} c_offense_date c_arrest_date c_charge_desc is_recid r_case_number r_charge_degree r_days_from_arrest "
    "r_offense_date r_charge_desc r_jail_in r_jail_out violent_recid is_violent_recid vr_case_number vr_charge_degree "
    "vr_offense_date vr_charge_desc type_of_assessment decile_score.1 score_text screening_date v_type_of_assessment "
    "v_decile_score v_score_text v_screening_date in_custody out_custody priors_count.1 start end event decile_score "
    "days_b_screening_arrest c_days_from_compas two_year_recid.1"
)
CALIBRATE = (
    _task("adult by sex", "adult/adult.data", "income", ">50K", "sex"),
    _task("adult by race", "adult/adult.data", "income", ">50K", "race"),
    _task("compas by race", "fairness/compas-scores-two-years_clean", "two_year_recid", "1", "race", COMPAS_DROP),
    _task("compas by sex", "fairness/compas-scores-two-years_clean", "two_year_recid", "1", "sex", COMPAS_DROP),
    _task("german by sex", "fairness/german_data_credit", "class-label", "1", "sex"),
    _task("bank by marital status", "fairness/bank-full", "y", "yes", "marital", "duration"),
    _task("bank by housing loan", "fairness/bank-full", "y", "yes", "housing", "duration"),
    _task("credit by sex", "fairness/credit-card-clients", CREDIT, "1", "SEX"),
    _task("credit by marriage", "fairness/credit-card-clients", CREDIT, "1", "MARRIAGE"),
    _task("dutch by sex", "fairness/dutch", "occupation", "1", "sex"),
    _task("law by race", "fairness/law_school_clean", "pass_bar", "1", "race"),
    _task("law by sex", "fairness/law_school_clean", "pass_bar", "1", "male"),
    _task("oulad by sex", "fairness/oulad_clean", "final_result", "Pass", "gender", "id_student"),
    _task("oulad by disability", "fairness/oulad_clean", "final_result", "Pass", "disability", "id_student"),
    _task(
        *("communities by race", "fairness/communities_crime", "class", "1", "Black"),
        "communityname state fold ViolentCrimesPerPop",
    ),
    _task("mortgages by race", "rdatasets/AER/HMDA", "deny", "yes", "afam"),
    _task("health by sex", "rdatasets/AER/HealthInsurance", "insurance", "yes", "gender"),
    _task("health by ethnicity", "rdatasets/AER/HealthInsurance", "insurance", "yes", "ethnicity"),
    _task("part time by ethnicity", "rdatasets/AER/CPS1988", "parttime", "yes", "ethnicity"),
    _task("children by race", "rdatasets/AER/Fertility2", "morekids", "yes", "afam"),
    _task("smoking by sex", "rdatasets/AER/SmokeBan", "smoker", "yes", "gender"),
    _task("arrests by colour", "rdatasets/carData/Arrests", "released", "Yes", "colour"),
    _task("churn by age", "rdatasets/modeldata/wa_churn", "churn", "Yes", "senior_citizen"),
    _task("churn by contract", "rdatasets/modeldata/wa_churn", "churn", "Yes", "contract"),
)
JUDGE = (
    _task("union by occupation", "rdatasets/AER/PSID7682", "union", "yes", "occupation", "id"),
    _task("home by sex", "rdatasets/AER/CollegeDistance", "home", "yes", "gender"),
    _task("insurance by sex", "rdatasets/AER/NMES1988", "insurance", "yes", "gender"),
    _task("crashes by sex", "rdatasets/DAAG/nassCDS", "dead", "dead", "sex", "weight injSeverity caseid"),
    _task("out of work by sex", "rdatasets/COUNT/rwm5yr", "outwork", "1", "female", "id self"),
    _task("insured in Vietnam by sex", "rdatasets/Ecdat/VietNamI", "insurance", "1", "sex", "commune"),
    _task("limits by sex", "rdatasets/Ecdat/MedExp", "physlim", "yes", "sex"),
    _task("wives insured by children", "rdatasets/Ecdat/HI", "whi", "yes", "hhi", "hhi2 wght"),
    _task("credit by records", "rdatasets/modeldata/credit_data", "Status", "bad", "Records"),
    _task("customers by voice mail", "rdatasets/modeldata/mlc_churn", "churn", "yes", "voice_mail_plan", "state"),
    _task("remote by open source", "rdatasets/modeldata/stackoverflow", "Remote", "Remote", "OpenSource"),
    _task("spam by format", "rdatasets/openintro/email", "spam", "1", "format", "time"),
    _task("fights by sex", "rdatasets/mediation/student", "fight", "1", "gender", "SCH_ID"),
    _task("aggression by sex", "rdatasets/lme4/VerbAgg", "r2", "Y", "Gender", "id resp"),
    _task("minority by sector", "rdatasets/mlmRev/Hsb82", "minrty", "Yes", "sector", "school"),
    _task("lunch by sex", "rdatasets/mlmRev/star", "ses", "F", "sx", "id sch tch hdeg clad birthq birthy"),
    _task("relapse by histology", "rdatasets/survival/nwtco", "rel", "1", "study", "seqno edrel"),
    _task("pension by marriage", "rdatasets/wooldridge/k401ksubs", "e401k", "1", "marr", "p401k incsq agesq"),
    _task("abuse by marriage", "rdatasets/wooldridge/alcohol", "abuse", "1", "married"),
    _task("degree by sex", "rdatasets/wooldridge/twoyear", "BA", "1", "female", "id AA univ totcoll jc"),
    _task("covered by sex", "rdatasets/stevedata/mm_nhis", "hi", "1", "fml", "perweight"),
    _task("voters by sex", "rdatasets/stevedata/Dee04", "register", "1", "female", "schoolid"),
    _task("rides by sex", "rdatasets/Stat2Data/YouthRisk", "ride.alc.driver", "1", "female"),
    _task("tips by company", "rdatasets/modeldata/taxi", "tip", "yes", "local"),
)
ADULT = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
]


def read(task: Task) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Training and held-out points, with features standardised by the training points; the group is a feature."""
    folder = Path(os.environ["TILTMETER_TABLES"])
    if task.file == "adult/adult.data":
        frame = pd.read_csv(folder / task.file, names=ADULT, skipinitialspace=True, na_values="?")
    else:
        frame = pd.read_csv(folder / f"{task.file}.csv", low_memory=False).drop(columns="rownames", errors="ignore")
    frame = frame.drop(columns=[name for name in task.drop if name in frame])
    if task.file.endswith("HMDA") or task.file.endswith("star"):
        frame = frame.drop(columns=[name for name in frame if frame[name].isna().mean() > 0.1])
    frame = frame.dropna(axis=1, thresh=int(0.7 * len(frame))).dropna()
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    few = frame[task.group].value_counts()
    frame = frame[frame[task.group].isin(few[few >= 60].index)].reset_index(drop=True)
    if frame[task.group].dtype.kind == "f":
        frame[task.group] = frame[task.group].astype(int)
    if frame[task.label].dtype.kind == "f":
        frame[task.label] = frame[task.label].astype(int)
    words = [name for name in frame if frame[name].dtype.kind not in "fiub" and frame[name].nunique() > 60]
    frame = frame.drop(columns=[name for name in words if name not in (task.label, task.group)])
    chosen = [name for name in frame if name != task.label]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = tm.GroupedData.from_frame(
            frame, label=task.label, group=task.group, features=chosen, positive=task.positive
        )
        train, held_out = data.split(HELD_OUT, seed=0)
    middle, width = train.x.mean(0, dtype=np.float64), train.x.std(0, dtype=np.float64)
    width = np.where(width == 0, 1.0, width)
    scaled = [part.with_points(((part.x - middle) / width).astype(np.float32)) for part in (train, held_out)]
    return scaled[0], scaled[1]
