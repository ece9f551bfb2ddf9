"""Models: predictors that are trained with differential privacy, at a price known before the data.

`model` is the contract; `inputs`, `rows` and `labels` say how records become numbers; `products`
multiplies so that no record moves the prediction of another; below them a package for each family.
A model is a PTK whose knowledge is a prediction, so that whatever takes a PTK takes a model.
"""
