"""Mistakes in the feature models that are trained, and in what serves them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_MODELS"]

OF_MODELS: list[Mutation] = [
    *within(
        "ptklib/ptks/forest/budget.py",
        "tests/ptks/test_forest_privacy.py",
        (
            "forest: all inputs for the price of one",
            "sensitivity=reach * shape.features)",
            "sensitivity=reach)",
            "test_each_mechanism_has_the_share_and_the_sensitivity_of_the_proof_note",
        ),
        (
            "forest: all levels for the price of one",
            "part / shape.depth",
            "part",
            "test_the_price_is_exactly_epsilon_and_delta",
        ),
        (
            "forest: a user's delta not divided",
            "delta=chance / records, sensitivity",
            "delta=chance, sensitivity",
            "test_each_mechanism_has_the_share_and_the_sensitivity_of_the_proof_note",
        ),
    ),
    *within(
        "ptklib/ptks/binned/noise.py",
        "tests/ptks/test_forest_privacy.py",
        (
            "forest: gaussian shares all at the whole",
            "/ math.sqrt(part) * (1 + _MARGIN)",
            "* (1 + _MARGIN)",
            "test_gaussian_noise_is_calibrated_over_all_trees_and_inputs",
        ),
    ),
    *within(
        "ptklib/ptks/forest/splits.py",
        "tests/ptks/test_forest_privacy.py",
        (
            "forest: half the sensitivity of squared errors",
            "HALF_RANGE_STEPS = STEPS**2 // 2",
            "HALF_RANGE_STEPS = STEPS**2 // 4",
            "test_each_mechanism_has_the_share_and_the_sensitivity_of_the_proof_note",
        ),
        (
            "forest: half the sensitivity of impurities",
            "HALF_RANGE_CLASSES = _UNITS",
            "HALF_RANGE_CLASSES = _UNITS // 2",
            "test_a_record_raises_the_impurity_of_classes_by_zero_to_two",
        ),
    ),
    *within(
        "ptklib/ptks/additive/budget.py",
        "tests/ptks/test_additive_privacy.py",
        (
            "additive: all rounds for the price of one",
            "times = rounds * sizes.inputs",
            "times = sizes.inputs",
            "test_each_release_has_the_share_and_the_sensitivity_of_the_proof_note",
        ),
        (
            "additive: all inputs' tables for the price of one",
            "sensitivity=weight * sizes.inputs)",
            "sensitivity=weight)",
            "test_each_release_has_the_share_and_the_sensitivity_of_the_proof_note",
        ),
        (
            "additive: a user's records for the price of one",
            "records * sizes.weight, records * REACH",
            "records * sizes.weight, REACH",
            "test_each_release_has_the_share_and_the_sensitivity_of_the_proof_note",
        ),
        (
            "additive: gaussian tables of all inputs for the price of one",
            "gaussian_part(sigma, weight, sizes.inputs, _TABLES)",
            "gaussian_part(sigma, weight, 1, _TABLES)",
            "test_gaussian_releases_together_cost_what_is_claimed",
        ),
    ),
    *within(
        "ptklib/ptks/additive/link.py",
        "tests/ptks/test_additive_privacy.py",
        (
            "additive: predictions add twice what is priced",
            "np.rint(STEPS * predictions) - REACH, -REACH, REACH)",
            "2 * np.rint(STEPS * predictions) - STEPS, -STEPS, STEPS)",
            "test_a_prediction_adds_half_a_record_at_most",
        ),
    ),
    *within(
        "ptklib/ptks/additive/boosting.py",
        "tests/auditing/test_kinds.py",
        (
            "additive: sums without noise",
            "plan.sums.release(sums, source=noise).values / STEPS",
            "sums / STEPS",
            "test_a_kind_stays_within_its_claim_and_is_not_far_below[additive, laplace]",
        ),
    ),
    *within(
        "ptklib/ptks/binned/records.py",
        "tests/ptks/test_forest.py",
        (
            "forest: records without a label count",
            "if bad.any():",
            "if bad.all():",
            "test_records_without_a_label_change_nothing_and_have_no_loss",
        ),
    ),
    *within(
        "ptklib/ptks/forest/trees.py",
        "tests/ptks/test_forest.py",
        (
            "forest: trees walked the other way",
            "node += code > threshold[place]",
            "node += code >= threshold[place]",
            "test_records_reach_the_leaf_that_the_splits_say",
        ),
    ),
    *within(
        "ptklib/ptks/interactions/ptk.py",
        "tests/ptks/test_interactions.py",
        (
            "interactions: all tables for the price of one",
            "return sum(copies) * weight,",
            "return max(copies) * weight,",
            "test_a_record_moves_every_table_by_its_weight_or_none",
        ),
        (
            "interactions: gaussian tables for the price of one",
            "sum(count**2 for count in copies) * weight**2",
            "max(copies) ** 2 * weight**2",
            "test_a_record_moves_every_table_by_its_weight_or_none",
        ),
        (
            "interactions: half of the variance told",
            "variance_of(given.plan) / self._target.weight**2",
            "variance_of(given.plan) / self._target.weight**2 / 2",
            "test_totals_have_the_noise_that_the_state_tells",
        ),
    ),
    *within(
        "ptklib/ptks/embeddings/releases.py",
        "tests/ptks/test_hpf.py",
        (
            "embeddings: a user's events for the price of one",
            "math.isqrt(square * self.records - 1) + 1",
            "math.isqrt(square - 1) + 1",
            "test_the_price_is_what_was_asked_and_not_less",
        ),
        (
            "embeddings: a quarter of the price",
            "sigma=self.base, sensitivity=1)",
            "sigma=2 * self.base, sensitivity=1)",
            "test_the_price_is_what_was_asked_and_not_less",
        ),
        (
            "embeddings: every release at the whole",
            "math.sqrt(parts / PARTS)",
            "1.0",
            "test_the_price_is_what_was_asked_and_not_less",
        ),
        (
            "embeddings: counts for free",
            "STEPS**2 + COUNT_UNITS**2 + SQUARE_UNITS**2, parts",
            "STEPS**2, parts",
            "test_the_price_is_what_was_asked_and_not_less",
        ),
        (
            "embeddings: products for free",
            "(GRAM_SCALE * RESOLUTION**2) ** 2 if products else 0",
            "0",
            "test_the_price_is_what_was_asked_and_not_less",
        ),
    ),
    *within(
        "ptklib/ptks/embeddings/budget.py",
        "tests/ptks/test_embeddings_tastes.py",
        (
            "embeddings: a test besides the budget",
            "PARTS - LEVEL - _TRUST - 2 * items_first(plan)",
            "PARTS - LEVEL - 2 * items_first(plan)",
            "test_whatever_is_decided_the_shares_are_no_more_than_there_is",
        ),
        (
            "embeddings: tastes bought whose noise cannot be drawn",
            "return for_tastes >= updates and plan.draws_tastes(for_tastes // updates, products=False)",
            "return for_tastes >= updates",
            "test_whatever_is_decided_its_noise_can_be_drawn",
        ),
    ),
    *within(
        "ptklib/ptks/embeddings/events.py",
        "tests/ptks/test_embeddings_tastes.py",
        (
            "embeddings: tastes tested on what they were learned from",
            "kept = (~held).astype(np.float64)",
            "kept = np.ones(len(held))",
            "test_a_pair_is_held_out_by_itself_and_tastes_are_not_learned_from_it",
        ),
    ),
    *within(
        "ptklib/ptks/embeddings/factorization.py",
        "tests/ptks/test_hpf.py",
        (
            "embeddings: features rounded up",
            "np.trunc(features",
            "np.rint(features",
            "test_whole_features_are_never_too_long",
        ),
    ),
    *within(
        "ptklib/ptks/embeddings/ptk.py",
        "tests/ptks/test_embeddings.py",
        (
            "embeddings: pairs counted often",
            "of if plan.records == 1 else EventTable.pairs",
            "of",
            "test_repeated_events_of_a_user_with_an_item_count_once_at_user_level",
        ),
        (
            "embeddings: vectors of users at user level",
            'self.publish == "both" and plan.records > 1',
            "False",
            "test_vectors_of_users_are_refused_at_user_level_with_the_reason",
        ),
    ),
    *within(
        "ptklib/ptks/embeddings/training.py",
        "tests/ptks/test_hpf.py",
        (
            "embeddings: tastes without noise",
            "release.release(sums.astype(np.int64), source=self.noise).values",
            "sums.astype(np.int64)",
            "test_a_record_moves_no_release_by_more_than_its_sensitivity",
        ),
        (
            "embeddings: products without noise",
            "release.release(both, source=self.noise).values",
            "both",
            "test_a_record_moves_no_release_by_more_than_its_sensitivity",
        ),
        (
            "embeddings: trust without noise",
            "release.release(sums, source=self.noise).values[0]",
            "sums[0]",
            "test_a_record_moves_no_release_by_more_than_its_sensitivity",
        ),
    ),
    *within(
        "ptklib/ptks/embeddings/training.py",
        "tests/auditing/test_kinds.py",
        (
            "embeddings: counts with an unnoised lowest bit",
            "totals, source=self.noise).values",
            "totals, source=self.noise).values // 2 * 2 + totals % 2",
            "test_a_kind_stays_within_its_claim_and_is_not_far_below[embeddings]",
        ),
        (
            "embeddings: tastes with an unnoised lowest bit",
            "sums.astype(np.int64), source=self.noise).values",
            "s := sums.astype(np.int64), source=self.noise).values // 2 * 2 + s % 2",
            "test_a_kind_stays_within_its_claim_and_is_not_far_below[embeddings]",
        ),
    ),
    *within(
        "ptklib/ptks/vectors/space.py",
        "tests/ptks/test_vectors.py",
        (
            "vectors: longer than the norm by rounding",
            "* (1 - 2.0**-40)",
            "* (1 + 2.0**-8)",
            "test_no_vector_is_longer_than_its_norm_by_any_rounding",
        ),
    ),
    *within(
        "ptklib/ptks/covariance/ptk.py",
        "tests/ptks/test_covariance.py",
        (
            "covariance: the constant for free",
            "return self._constant**2 + self._space.limit",
            "return self._space.limit",
            "test_records_add_a_semidefinite_matrix_of_bounded_trace",
        ),
        (
            "covariance: a user's records for the price of one",
            "budget.records * self",
            "self",
            "test_the_price_is_one_release_and_exactly_epsilon",
        ),
    ),
    *within(
        "ptklib/ptks/covariance/noise.py",
        "tests/ptks/test_covariance_noise.py",
        (
            "covariance: one Wishart matrix, which bounds the truth",
            "T - normal[1] @ normal[1].T",
            "T",
            "test_one_column_has_laplace_noise",
        ),
        (
            "covariance: half the noise",
            "float(self.scale / (2 * self.grain))",
            "float(self.scale / (4 * self.grain))",
            "test_one_column_has_laplace_noise",
        ),
    ),
    *within(
        "ptklib/ptks/clusters/noise.py",
        "tests/ptks/test_clusters_noise.py",
        (
            "clusters: a cube of one dimension less",
            "geometric((len(left), self.width + 1)",
            "geometric((len(left), self.width)",
            "test_the_largest_absolute_value_has_its_law",
        ),
    ),
    *within(
        "ptklib/ptks/clusters/budget.py",
        "tests/ptks/test_clusters.py",
        (
            "clusters: every iteration at the whole",
            "CubeRelease(epsilon=budget.epsilon * share",
            "CubeRelease(epsilon=budget.epsilon",
            "test_iterations_spend_what_was_priced_with_and_without_a_last_state",
        ),
        (
            "clusters: a user's records for the price of one",
            "reach, width = budget.records * STEPS",
            "reach, width = STEPS",
            "test_iterations_spend_what_was_priced_with_and_without_a_last_state",
        ),
    ),
    *within(
        "ptklib/ptks/clusters/grid.py",
        "tests/ptks/test_clusters.py",
        (
            "clusters: a record of more than one weight",
            "self._parts * integers - place, axis, 0",
            "self._parts * integers, axis, 0",
            "test_missing_records_are_in_no_cluster_and_in_no_node",
        ),
    ),
    *within(
        "ptklib/features.py",
        "tests/ptks/test_featurize.py",
        (
            "featurize: a name is taken twice",
            "if name in owners:",
            "if name in owners and prefix:",
            "test_a_feature_needs_a_new_name",
        ),
        (
            "featurize: a column of the frame is hidden",
            ", taken=column_names(frame)",
            "",
            "test_a_feature_needs_a_new_name",
        ),
    ),
    *within(
        "ptklib/export/files.py",
        "tests/ptks/test_export.py",
        (
            "export: not tried before it is written",
            "_check(state, plan)",
            "pass",
            "test_a_plan_that_is_wrong_is_never_written",
        ),
        (
            "export: a name becomes code",
            "name=ascii(manifest.name)",
            'name="\'" + manifest.name + "\'"',
            "test_a_name_cannot_put_code_into_the_module",
        ),
    ),
    *within(
        "ptklib/serving/runner.py",
        "tests/ptks/test_export.py",
        (
            "serving: changed arrays are read",
            "hashlib.sha256(data).hexdigest() != sha256",
            "False",
            "test_damaged_and_foreign_files_are_refused",
        ),
    ),
    *within(
        "ptklib/ptks/binned/checks.py",
        "tests/engine/test_memory.py",
        (
            "forest: a column as often as one likes",
            "not twice,",
            "True,",
            "TestConfigurations::test_inputs_of_a_forest_differ_and_are_not_too_many",
        ),
    ),
    *within(
        "ptklib/ptks/forest/ptk.py",
        "tests/auditing/test_kinds.py",
        (
            "forest: leaves without noise",
            "plan.leaves.release(counts, source=noise).values",
            "counts",
            "test_a_kind_stays_within_its_claim_and_is_not_far_below[forest, exponential]",
        ),
    ),
]
